/*
 * A frame of the call tree is one address. In a recording each function at it, inlined ones
 * included, has its own row, the outermost first, and a node for each of them.
 */
#include "recording/recording_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "symbols/wrapper.h"

#define NO_OBJECT (UINT32_C(1) << 31)

static uint32_t *slot_of(uint32_t **data, size_t *count, size_t i)
{
	if (i >= *count) {
		size_t old = *count;

		*data = xgrow(*data, count, i + 1, sizeof(**data));
		memset(*data + old, 0, (*count - old) * sizeof(**data));
	}
	return *data + i;
}

/* -- objects -- */

static uint64_t add_object(struct recording_builder *b, const struct recording_object *o)
{
	char hex[129];
	size_t n = o->build_id ? MIN(o->build_id_size, (sizeof(hex) - 1) / 2) : 0;

	for (size_t i = 0; i < n; i++) {
		static const char digits[] = "0123456789abcdef";

		hex[2 * i] = digits[o->build_id[i] >> 4];
		hex[2 * i + 1] = digits[o->build_id[i] & 15];
	}
	const uint64_t row[OBJECT_COLUMNS] = {
		recording_string(b->r, o->path), recording_text_index(b->r, hex, 2 * n),
		o->start, o->end, o->offset};

	recording_add(b->r, RECORDING_OBJECTS, row);
	return recording_rows(b->r, RECORDING_OBJECTS);
}

/* The row + 1 of module @id; 0 = unknown. */
static uint32_t object_row(struct recording_builder *b, uint32_t id)
{
	uint32_t *slot = slot_of(&b->object, &b->object_count, id);
	struct recording_object o = {0};

	if (!*slot)
		*slot = id && b->in.names.object(b->in.names.ctx, id, &o) ?
				(uint32_t)add_object(b, &o) :
				NO_OBJECT;
	return *slot == NO_OBJECT ? 0 : *slot;
}

void recording_names_program(struct recording_builder *b)
{
	if (b->in.names.program)
		object_row(b, b->in.names.program);
}

/* -- frames -- */

/* @is_below_main: start-up code. */
static enum recording_kind kind_of(const struct filter *filter, const struct frame_text *text,
				   bool is_below_main)
{
	const char *function = text->function;

	if (function && filter_is_alloc_fn(filter, function))
		return KIND_ALLOCATOR;
	enum standard_library library = standard_library(text);

	if (is_below_main || (library != STANDARD_NONE && library != STANDARD_MALLOC))
		return KIND_STANDARD;
	if (library == STANDARD_MALLOC || wrapper_is_malloc_like(function))
		return KIND_ALLOCATOR;
	return text->object && strstr(text->object, ".so") ? KIND_LIBRARY : KIND_PROGRAM;
}

/* What differs among the functions at an address. */
struct added {
	const char *object;
	bool is_inlined, is_below_main;
};

static void add_frame(struct recording *r, const struct recording_place *place,
		      const struct symbol_frame *f, const struct added *a)
{
	_cleanup_free_ char *path = f->file && f->dir && *f->file != '/' ?
					    xasprintf("%s/%s", f->dir, f->file) :
					    NULL;
	const struct frame_text text = {
		.function = f->name, .file = path ? path : f->file, .object = a->object};
	const uint64_t row[FRAME_COLUMNS] = {
		recording_string(r, f->name),
		recording_string(r, path ? path : f->file),
		f->line,
		place->object,
		kind_of(place->filter, &text, a->is_below_main),
		a->is_inlined,
		place->address,
	};

	recording_add(r, RECORDING_FRAMES, row);
}

bool recording_names_is_startup(const struct symbol *s)
{
	static const char versioned[] = "__libc_start_main@";
	const char *name = s->frame[s->count - 1].name;

	return s->is_below_main || (name && strncmp(name, versioned, sizeof(versioned) - 1) == 0);
}

void recording_names_add(struct recording *r, const struct recording_place *place,
			 const struct symbol *s)
{
	struct added a = {.object = s->object, .is_below_main = s->is_below_main};

	if (place->object) {
		size_t path = recording_get(r, RECORDING_OBJECTS, place->object - 1, OBJECT_PATH);

		a.object = r->text.data[path];
	}
	if (recording_names_is_startup(s)) {
		const struct symbol_frame f = {.name = s->frame[s->count - 1].name};

		add_frame(r, place, &f, &a);
		return;
	}
	for (uint32_t i = s->count; i-- > 0;) {
		a.is_inlined = i + 1 < s->count;
		add_frame(r, place, &s->frame[i], &a);
	}
}

static void add_frames(struct recording_builder *b, uint32_t frame)
{
	const struct calltree_frame *cf =
		calltree_frame(profile_calltree(b->in.report->profile), frame);
	const struct recording_place place = {.object = object_row(b, cf->module),
					      .address = cf->pc, .filter = b->in.report->filter};

	if (b->in.names.function) {
		struct symbol_frame f = {.name = b->in.names.function(b->in.names.ctx, frame)};
		const struct symbol quick = {.frame = &f, .count = 1};

		recording_names_add(b->r, &place, &quick);
		return;
	}
	const struct symbol *s = b->in.report->symbol(b->in.report->symbol_ctx, frame, SYMBOL_REAL);

	if (!recording_names_is_startup(s))
		s = b->in.report->symbol(b->in.report->symbol_ctx, frame, SYMBOL_ALL);
	recording_names_add(b->r, &place, s);
}

/* The row of the real function at @frame, followed by the inlined ones. */
static uint32_t frame_row(struct recording_builder *b, uint32_t frame)
{
	uint32_t *slot = slot_of(&b->frame, &b->frame_count, frame);

	if (!*slot) {
		*slot = (uint32_t)recording_rows(b->r, RECORDING_FRAMES) + 1;
		add_frames(b, frame);
	}
	return *slot - 1;
}

/* -- nodes -- */

static uint32_t add_nodes(struct recording_builder *b, uint32_t parent, uint32_t frame)
{
	size_t row = frame_row(b, frame), end = recording_rows(b->r, RECORDING_FRAMES);

	do {
		const uint64_t node[NODE_COLUMNS] = {parent, row};

		recording_add(b->r, RECORDING_NODES, node);
		parent = (uint32_t)recording_rows(b->r, RECORDING_NODES);
		row++;
	} while (row < end && recording_get(b->r, RECORDING_FRAMES, row, FRAME_INLINED));
	return parent;
}

uint32_t recording_names_node(struct recording_builder *b, uint32_t node)
{
	const struct calltree *tree = profile_calltree(b->in.report->profile);
	VEC(uint32_t) todo = {0};
	uint32_t parent = 0;

	for (; node; node = calltree_parent(tree, node)) {
		parent = *slot_of(&b->node, &b->node_count, node);
		if (parent)
			break;
		*vec_add(&todo) = node;
	}
	while (todo.count > 0) {
		node = todo.data[--todo.count];
		parent = add_nodes(b, parent, calltree_node_frame(tree, node));
		*slot_of(&b->node, &b->node_count, node) = parent;
	}
	vec_deinit(&todo);
	return parent;
}
