/* See stack_site.h. */
#include "symbols/stack_site.h"

#include <string.h>

static struct stack_frame frame_at(const struct stack *s, size_t i)
{
	return s->frame(s->ctx, i);
}

/*
 * The first frame from @i on that is not inlined and, with @is_named, has a name; otherwise the
 * count.
 */
static size_t find_real(const struct stack *s, size_t i, bool is_named)
{
	for (; i < s->count; i++) {
		struct stack_frame f = frame_at(s, i);

		if (!f.is_inlined && (f.is_named || !is_named))
			break;
	}
	return i;
}

/* The rank of frame @i. *@named caches the first real frame with a name at or after @i. */
static enum frame_rank rank_of(const struct stack *s, size_t i, size_t *named)
{
	struct stack_frame f = frame_at(s, i);

	if (f.rank == RANK_SITE && f.is_inlined) {
		i = find_real(s, i, false);
		f = i < s->count ? frame_at(s, i) : f;
	}
	if (f.rank != RANK_SITE || f.is_named)
		return f.rank;
	if (*named <= i)
		*named = find_real(s, i, true);
	return *named < s->count && frame_at(s, *named).is_allocator ? RANK_UNNAMED : RANK_SITE;
}

/* The frame that represents the unnamed frame @i. */
static size_t find_representative(const struct stack *s, size_t i)
{
	const char *object = frame_at(s, i).object;

	for (size_t k = i; object && k < s->count; k++) {
		struct stack_frame f = frame_at(s, k);

		if (!f.object || strcmp(f.object, object) != 0)
			break;
		if (f.is_named && !f.is_inlined)
			return k;
	}
	return i;
}

struct stack_site stack_site_find(const struct stack *s)
{
	struct stack_site best = {.rank = RANK_SITE};
	size_t named = 0;

	for (size_t i = 0; i < s->count; i++) {
		enum frame_rank rank = rank_of(s, i, &named);

		if (rank == RANK_SITE && frame_at(s, i).is_named)
			return (struct stack_site){.frame = i};
		if (rank == RANK_SITE)
			return (struct stack_site){find_representative(s, i), rank, true};
		if (i == 0 || wrapper_is_better(rank, best.rank))
			best = (struct stack_site){.frame = i, .rank = rank};
	}
	return best;
}
