/* See recording_site.h. */
#include "recording/recording_site.h"

#include "base/vec.h"
#include "recording/recording_names.h"
#include "symbols/stack_site.h"

struct path {
	const struct recording *r;
	VEC(uint64_t) node; /* rows, innermost first */
};

static const char *text_at(const struct recording *r, uint64_t index)
{
	return index ? r->text.data[index] : NULL;
}

/* The recording knows which functions the user named as allocators, and start-up code. */
static enum frame_rank rank_of(const struct frame_text *text, uint64_t kind)
{
	enum frame_rank rank = wrapper_rank(text);

	if (rank != RANK_SITE || kind == KIND_PROGRAM || kind == KIND_LIBRARY)
		return rank;
	return wrapper_is_named(text->function) ? RANK_FUNCTION : RANK_UNNAMED;
}

static struct stack_frame frame_at(void *ctx, size_t i)
{
	const struct path *p = ctx;
	const struct recording *r = p->r;
	size_t row = recording_get(r, RECORDING_NODES, p->node.data[i], NODE_FRAME);
	uint64_t object = recording_get(r, RECORDING_FRAMES, row, FRAME_OBJECT);
	uint64_t kind = recording_get(r, RECORDING_FRAMES, row, FRAME_KIND);
	const struct frame_text text = {
		text_at(r, recording_get(r, RECORDING_FRAMES, row, FRAME_FUNCTION)),
		text_at(r, recording_get(r, RECORDING_FRAMES, row, FRAME_FILE)),
		object ? text_at(r, recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH)) :
			 NULL,
	};

	bool is_start = kind == KIND_STANDARD && (wrapper_rank(&text) == RANK_SITE ||
						  !wrapper_is_named(text.function));

	return (struct stack_frame){
		.rank = rank_of(&text, kind),
		.is_named = text.function,
		.is_allocator = text.function && wrapper_is_allocator(text.function),
		.is_inlined = recording_get(r, RECORDING_FRAMES, row, FRAME_INLINED),
		.object = is_start ? NULL : text.object,
	};
}

int64_t recording_site_of(const struct recording *r, uint64_t node)
{
	struct path p = {.r = r};
	int64_t site = -1;

	for (uint64_t n = node; n > 0; n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(&p.node) = n - 1;
	if (p.node.count > 0) {
		const struct stack stack = {frame_at, &p, p.node.count};

		site = (int64_t)p.node.data[stack_site_find(&stack).frame];
	}
	vec_deinit(&p.node);
	return site;
}

int64_t recording_site(const struct recording *r, size_t leaf)
{
	return recording_site_of(r, recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE));
}
