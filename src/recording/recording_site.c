/* See recording_site.h. */
#include "recording/recording_site.h"

#include <string.h>

#include "base/alloc.h"
#include "symbols/wrapper.h"

#define MAX_RULES 1000 /* of a file: all are compared with each frame */

struct path {
	const struct recording *r;
	VEC(uint64_t) node; /* rows, innermost first */
};

struct frame_text recording_frame_text(const struct recording *r, size_t row)
{
	uint64_t object = recording_get(r, RECORDING_FRAMES, row, FRAME_OBJECT);

	return (struct frame_text){
		.function = recording_get_text(r, RECORDING_FRAMES, row, FRAME_FUNCTION),
		.file = recording_get_text(r, RECORDING_FRAMES, row, FRAME_FILE),
		.object = object ? recording_get_text(r, RECORDING_OBJECTS, object - 1,
						      OBJECT_PATH) :
				   NULL,
		.my_code = &r->my_code,
	};
}

void recording_read_my_code(struct recording *r)
{
	size_t rows = recording_rows(r, RECORDING_META);

	for (size_t i = 0; i < rows && r->my_code.rule.count < MAX_RULES; i++) {
		const char *key = recording_get_text(r, RECORDING_META, i, META_KEY);
		const char *value = recording_get_text(r, RECORDING_META, i, META_VALUE);

		if (key && value && strcmp(key, MY_CODE_META) == 0)
			my_code_add(&r->my_code, value);
	}
}

/* -- frames -- */

/*
 * The recording knows which functions the user named as allocators, and start-up code. An inlined
 * function whose source file is not known belongs to the one that contains it.
 */
static struct recording_role find_role(const struct recording *r, size_t row,
				       const struct frame_text *text)
{
	uint64_t kind = recording_get(r, RECORDING_FRAMES, row, FRAME_KIND);
	bool is_malloc = standard_library(text) == STANDARD_MALLOC;
	struct recording_role role = {
		.rank = wrapper_rank(text),
		.is_allocator = text->function && wrapper_is_allocator(text->function),
	};

	role.is_start = kind == KIND_STANDARD &&
			(role.rank == RANK_SITE || wrapper_is_below_main(text->function));
	role.is_fixed = role.is_start || (kind == KIND_ALLOCATOR && !is_malloc) ||
			wrapper_is_malloc_like(text->function) ||
			(text->function && *text->function == '[');
	if (role.rank == RANK_SITE && kind != KIND_PROGRAM && kind != KIND_LIBRARY)
		role.rank = wrapper_rank_named(text->function);
	return role;
}

/* As find_role, which looks at the names, once for each frame. */
static struct recording_role role_of(const struct recording *r, size_t row,
				     const struct frame_text *text)
{
	while (r->known_role->count <= row)
		*vec_add(r->known_role) = (struct recording_known_role){0};
	struct recording_known_role *known = &r->known_role->data[row];
	const uint64_t function = recording_get(r, RECORDING_FRAMES, row, FRAME_FUNCTION);
	const uint64_t file = recording_get(r, RECORDING_FRAMES, row, FRAME_FILE);
	const uint64_t object = recording_get(r, RECORDING_FRAMES, row, FRAME_OBJECT);
	const uint64_t kind = recording_get(r, RECORDING_FRAMES, row, FRAME_KIND);

	if (!known->is_known || known->function != function || known->file != file ||
	    known->object != object || known->kind != kind) {
		const struct recording_role role = find_role(r, row, text);

		*known = (struct recording_known_role){
			.function = function, .file = file, .object = object, .kind = kind,
			.is_known = true, .rank = (uint8_t)role.rank,
			.role = (uint8_t)recording_role_bits(&role)};
	}
	return (struct recording_role){
		.rank = (enum frame_rank)known->rank,
		.is_allocator = known->role & ROLE_ALLOCATOR,
		.is_fixed = known->role & ROLE_FIXED,
		.is_start = known->role & ROLE_START,
	};
}

struct recording_role recording_frame_role(const struct recording *r, size_t row)
{
	struct frame_text text = recording_frame_text(r, row);
	size_t real = row; /* of the function that contains the frame */

	while (real > 0 && recording_get(r, RECORDING_FRAMES, real, FRAME_INLINED))
		real--;
	text.my_code = NULL;
	struct recording_role role = role_of(r, row, &text);

	if (role.rank == RANK_SITE && real != row && !standard_has_path(&text))
		role.rank = recording_frame_role(r, real).rank;
	return role;
}

unsigned recording_role_bits(const struct recording_role *role)
{
	return (role->is_allocator ? ROLE_ALLOCATOR : 0u) | (role->is_fixed ? ROLE_FIXED : 0u) |
	       (role->is_start ? ROLE_START : 0u);
}

static enum frame_rank rank_by_user(const struct frame_text *text,
				    const struct recording_role *role)
{
	switch (my_code_find(text->my_code, text->file, text->object)) {
	case MY_CODE_MINE:
		return role->is_fixed ? role->rank : RANK_SITE;
	case MY_CODE_NOT_MINE:
		if (text->function && *text->function == '[')
			return role->rank;
		return wrapper_rank_named(text->function);
	default:
		return role->rank;
	}
}

static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	const struct path *p = ctx;

	if (i >= p->node.count)
		return false;
	size_t row = recording_get(p->r, RECORDING_NODES, p->node.data[i], NODE_FRAME);
	const struct frame_text text = recording_frame_text(p->r, row);
	const struct recording_role role = recording_frame_role(p->r, row);

	*out = (struct stack_frame){
		.rank = rank_by_user(&text, &role),
		.is_named = text.function,
		.is_allocator = role.is_allocator,
		.object = role.is_start ? NULL : text.object,
	};
	return true;
}

int64_t recording_site_of(const struct recording *r, uint64_t node)
{
	struct path p = {.r = r};
	int64_t site = -1;

	if (r->node_site)
		return node ? r->node_site[node - 1] : -1;
	for (uint64_t n = node; n > 0; n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(&p.node) = n - 1;
	if (p.node.count > 0) {
		const struct stack stack = {frame_at, &p};

		site = (int64_t)p.node.data[stack_site_find(&stack).frame];
	}
	vec_deinit(&p.node);
	return site;
}

int64_t recording_site(const struct recording *r, size_t leaf)
{
	return recording_site_of(r, recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE));
}
