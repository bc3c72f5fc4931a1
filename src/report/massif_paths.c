#include "report/massif_paths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/path_tree.h"
#include "profile/estimate.h"
#include "recording/recording_site.h"
#include "report/massif_file.h"
#include "symbols/wrapper.h"

bool massif_wrapper_is_allocator(const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));

	return wrapper_is_allocator(function);
}

enum frame_rank massif_wrapper_rank(const struct massif_file *f, const struct massif_frame *frame)
{
	_cleanup_free_ char *function = xasprintf("%.*s", MASSIF_TEXT(frame->function));
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));
	_cleanup_free_ char *file = xasprintf("%.*s", MASSIF_TEXT(frame->file));
	const struct frame_text text = {
		.function = function, .file = file, .object = object, .my_code = f->my_code};

	return wrapper_rank(&text);
}

struct massif_stack {
	const struct massif_file *file;
	VEC(uint32_t) node; /* outermost first */
	VEC(char *) text;   /* of frames looked up so far; owned */
};

/* NULL = unknown: functions with source lines have none. */
static const char *object_of(struct massif_stack *p, const struct massif_frame *frame)
{
	if (!frame->object.size || massif_text_is(frame->object, "???"))
		return NULL;
	return *vec_add(&p->text) = xasprintf("%.*s", MASSIF_TEXT(frame->object));
}

/* Frames below the threshold have no name. */
static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	struct massif_stack *p = ctx;
	struct massif_frame frame;

	if (i >= p->node.count)
		return false;
	massif_file_frame(&p->file->node[p->node.data[p->node.count - 1 - i]], &frame);
	*out = (struct stack_frame){.rank = RANK_UNNAMED};
	if (frame.line != MASSIF_LINE_FRAME)
		return true;
	bool is_named = !massif_text_is(frame.function, "???");

	*out = (struct stack_frame){
		.rank = massif_wrapper_rank(p->file, &frame),
		.is_named = is_named,
		.is_allocator = is_named && massif_wrapper_is_allocator(&frame),
		.object = object_of(p, &frame),
	};
	return true;
}

/*
 * The call site (symbols/wrapper.h) of the stack that ends with @outermost: the number of frames
 * inside it. The root is a frame only if it is the whole stack.
 */
static size_t site_frame(const struct massif_file *file, uint32_t outermost)
{
	struct massif_stack p = {.file = file};
	uint32_t n = outermost;

	do {
		*vec_add(&p.node) = n;
		n = file->node[n].parent;
	} while (n && file->node[n].parent);
	const struct stack stack = {frame_at, &p};
	size_t site = stack_site_find(&stack).frame;

	vec_release(&p.text, e, free(*e));
	vec_deinit(&p.node);
	return site;
}

/*
 * Massif trees as call paths. A node with bytes of its own is the end of one path: from it to the
 * root is from the outermost caller inwards, the order of flame graphs.
 */

static int find_last(const struct massif_file *f, size_t *index_out)
{
	for (size_t i = f->snapshot_count; i-- > 0;) {
		if (f->snapshot[i].root) {
			*index_out = i;
			return 0;
		}
	}
	return -EINVAL;
}

int massif_paths_find(const struct massif_file *f, uint64_t which, size_t *index_out,
		      char **why_out)
{
	bool has_peak = f->peak < f->snapshot_count && f->snapshot[f->peak].root;

	if (has_peak && (which == MASSIF_SNAPSHOT_DEFAULT || which == MASSIF_SNAPSHOT_PEAK)) {
		*index_out = f->peak;
		return 0;
	}
	if (which == MASSIF_SNAPSHOT_PEAK) {
		*why_out = xstrdup("no snapshot is marked as the peak");
		return -EINVAL;
	}
	if (which == MASSIF_SNAPSHOT_DEFAULT || which == MASSIF_SNAPSHOT_LAST) {
		if (!find_last(f, index_out))
			return 0;
		*why_out = xstrdup("no snapshot has a tree");
		return -EINVAL;
	}
	for (size_t i = 0; i < f->snapshot_count; i++) {
		if (f->snapshot[i].number != which)
			continue;
		if (f->snapshot[i].root) {
			*index_out = i;
			return 0;
		}
		*why_out = xasprintf("snapshot %" PRIu64 " has no tree: it is not a detailed one",
				     which);
		return -EINVAL;
	}
	*why_out = xasprintf("there is no snapshot %" PRIu64, which);
	return -EINVAL;
}

char *massif_snapshot_text(const struct massif_file *f, size_t index)
{
	return xasprintf("%ssnapshot %" PRIu64, index == f->peak ? "peak " : "",
			 f->snapshot[index].number);
}

static struct massif_text base_name(struct massif_text path)
{
	const char *slash = memrchr(path.at, '/', path.size);

	if (!slash || slash + 1 == path.at + path.size)
		return path;
	return (struct massif_text){slash + 1, path.size - (size_t)(slash + 1 - path.at)};
}

static char *location_name(const struct massif_frame *frame)
{
	if (frame->line != MASSIF_LINE_FRAME || !frame->location.size)
		return NULL;
	if (frame->file.size)
		return xasprintf("(%.*s)", MASSIF_TEXT(frame->location));
	return xasprintf("(in %.*s)", MASSIF_TEXT(base_name(frame->object)));
}

void massif_paths_site(const struct massif_file *file, uint32_t node, char **function_out,
		       char **location_out)
{
	struct massif_frame frame;

	massif_file_frame(&file->node[node], &frame);
	_cleanup_free_ char *location = location_name(&frame);

	*function_out = text_clean(frame.function.at, frame.function.size);
	*location_out = location ? text_clean(location, strlen(location)) : NULL;
}

/* -- as tables of a recording -- */

struct import {
	const struct massif_file *file;
	struct massif_paths *paths;
	struct path_tree *frames;  /* children of its root: the distinct lines */
	struct path_tree *nodes;   /* their stacks, outermost first */
	struct path_tree *objects; /* children of its root */
	VEC(uint32_t) leaf_of;     /* by node of `nodes`: its leaf + 1; 0 = none */
};

static uint64_t text_index(struct recording *r, struct massif_text t)
{
	return t.size && !massif_text_is(t, "???") ? recording_text_index(r, t.at, t.size) : 0;
}

static uint64_t function_of(struct recording *r, const struct massif_frame *frame)
{
	if (frame->line == MASSIF_LINE_AGGREGATE)
		return recording_string(r, "[below threshold]");
	if (frame->line == MASSIF_LINE_ROOT)
		return recording_string(r, "[allocation functions]");
	return text_index(r, frame->function);
}

/* Of the frame in @row, without --my-code. */
static enum recording_kind kind_of(const struct recording *r, size_t row)
{
	struct frame_text text = recording_frame_text(r, row);

	text.my_code = NULL;
	enum standard_library library = standard_library(&text);

	if (library != STANDARD_NONE && library != STANDARD_MALLOC)
		return KIND_STANDARD;
	if (library == STANDARD_MALLOC || wrapper_is_malloc_like(text.function))
		return KIND_ALLOCATOR;
	return text.object && strstr(text.object, ".so") ? KIND_LIBRARY : KIND_PROGRAM;
}

/* The row of the object, + 1; 0 = unknown. */
static uint32_t add_object(struct import *m, struct massif_text object)
{
	struct recording *r = m->paths->recording;
	uint64_t path = text_index(r, object);

	if (!path)
		return 0;
	uint32_t i = path_tree_child(m->objects, 0, object.at, object.size);

	if (i > recording_rows(r, RECORDING_OBJECTS))
		recording_add(r, RECORDING_OBJECTS, (uint64_t[OBJECT_COLUMNS]){path});
	return i;
}

/* The frame of @node, + 1. Lines that differ in their addresses are one. */
static uint32_t add_frame(struct import *m, uint32_t node)
{
	struct recording *r = m->paths->recording;
	struct massif_frame frame;

	massif_file_frame(&m->file->node[node], &frame);
	struct massif_text t = frame.function;

	if (frame.location.size)
		t.size = (size_t)(frame.location.at + frame.location.size - t.at);
	uint32_t i = path_tree_child(m->frames, 0, t.at, t.size);

	if (i > m->paths->sample.count) {
		const uint64_t row[FRAME_COLUMNS] = {
			[FRAME_FUNCTION] = function_of(r, &frame),
			[FRAME_FILE] = text_index(r, frame.file),
			[FRAME_LINE] = frame.line_number,
			[FRAME_OBJECT] = add_object(m, frame.object),
			[FRAME_KIND] = KIND_NONE,
		};

		recording_add(r, RECORDING_FRAMES, row);
		if (frame.line == MASSIF_LINE_FRAME)
			r->table[RECORDING_FRAMES].column[FRAME_KIND][i - 1] = kind_of(r, i - 1);
		*vec_add(&m->paths->sample) = node;
	}
	return i;
}

static uint32_t add_node(struct import *m, uint32_t parent, uint32_t frame)
{
	const char *name = path_tree_node(m->frames, frame)->name;
	uint32_t node = path_tree_child(m->nodes, parent, name, strlen(name));

	if (node > m->paths->site.count) {
		const uint64_t row[NODE_COLUMNS] = {[NODE_PARENT] = parent,
						    [NODE_FRAME] = frame - 1};

		recording_add(m->paths->recording, RECORDING_NODES, row);
		*vec_add(&m->paths->site) = -1;
		*vec_add(&m->leaf_of) = 0;
	}
	return node;
}

/* The row of the node that is the call site of the stack from @outermost, of the file, inwards. */
static int64_t site_of(const struct import *m, uint32_t outermost, uint32_t innermost)
{
	for (size_t i = site_frame(m->file, outermost); i > 0; i--)
		innermost = path_tree_node(m->nodes, innermost)->parent;
	return (int64_t)innermost - 1;
}

/* The leaf, + 1, of the stack from @node of the file back to its root. */
static uint32_t add_leaf(struct import *m, uint32_t node)
{
	struct recording *r = m->paths->recording;
	uint32_t at = 0, n = node;

	do {
		at = add_node(m, at, add_frame(m, n));
		n = m->file->node[n].parent;
	} while (n && m->file->node[n].parent);
	if (!m->leaf_of.data[at - 1]) {
		recording_add(r, RECORDING_LEAVES, (uint64_t[LEAF_COLUMNS]){[LEAF_NODE] = at});
		m->leaf_of.data[at - 1] = (uint32_t)recording_rows(r, RECORDING_LEAVES);
		m->paths->site.data[at - 1] = site_of(m, node, at);
	}
	return m->leaf_of.data[at - 1];
}

const struct massif_paths *massif_paths(struct massif_file *f)
{
	if (f->paths)
		return f->paths;
	struct massif_paths *p = f->paths = xcalloc(1, sizeof(*p));
	struct import m = {.file = f, .paths = p, .frames = path_tree_new(),
			   .nodes = path_tree_new(), .objects = path_tree_new()};

	p->recording = recording_new();
	p->recording->interval = massif_sampling_interval(f);
	p->recording->has_bounds = true;
	for (size_t i = 0; f->my_code && i < f->my_code->rule.count; i++)
		my_code_add(&p->recording->my_code, f->my_code->rule.data[i]);
	p->leaf = xcalloc(f->node_count + 1, sizeof(*p->leaf));
	for (uint32_t n = 1; n < f->node_count; n++)
		p->leaf[n] = massif_own_bytes(f, n) ? add_leaf(&m, n) : 0;
	p->recording->node_site = p->site.data;
	path_tree_free(m.frames);
	path_tree_free(m.nodes);
	path_tree_free(m.objects);
	vec_deinit(&m.leaf_of);
	return p;
}

void massif_paths_free(struct massif_file *f)
{
	struct massif_paths *p = f ? f->paths : NULL;

	if (!p)
		return;
	f->paths = NULL;
	recording_free(p->recording);
	vec_deinit(&p->site);
	vec_deinit(&p->sample);
	free(p->leaf);
	free(p);
}

void massif_paths_view(struct massif_file *f, size_t index, struct recording_view *v)
{
	const struct massif_paths *p = massif_paths(f);
	uint32_t root = index < f->snapshot_count ? f->snapshot[index].root : 0;

	recording_view_empty(v, p->recording);
	for (uint32_t n = root, end = root ? massif_tree_end(f, root) : 0; n < end; n++) {
		uint64_t bytes = massif_own_bytes(f, n);
		const struct recording_value held = {
			.bytes = bytes,
			.variance = estimate_variance_bound(p->recording->interval, bytes)};

		if (bytes) {
			recording_value_add(&v->leaf[p->leaf[n] - 1], &held);
			recording_value_add(&v->sum, &held);
		}
	}
}
