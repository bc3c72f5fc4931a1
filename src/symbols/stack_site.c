/* See stack_site.h. */
#include "symbols/stack_site.h"

#include <string.h>

static bool get_frame(const struct stack *s, size_t i, struct stack_frame *out)
{
	return s->frame(s->ctx, i, out);
}

/* Whether the nearest named frame from @i on is an allocator's. */
static bool is_part_of_allocator(const struct stack *s, size_t i)
{
	struct stack_frame f;

	for (; get_frame(s, i, &f); i++) {
		if (f.is_named)
			return f.is_allocator;
	}
	return false;
}

/* The frame that represents the unnamed frame @i of @object. */
static size_t find_representative(const struct stack *s, size_t i, const char *object)
{
	struct stack_frame f;

	for (size_t k = i; object && get_frame(s, k, &f); k++) {
		if (!f.object || strcmp(f.object, object) != 0)
			break;
		if (f.is_named)
			return k;
	}
	return i;
}

struct stack_site stack_site_find(const struct stack *s)
{
	struct stack_site best = {.rank = RANK_SITE};
	struct stack_frame f;

	for (size_t i = 0; get_frame(s, i, &f); i++) {
		if (f.rank == RANK_SITE && f.is_named)
			return (struct stack_site){.frame = i};
		if (f.rank == RANK_SITE && !is_part_of_allocator(s, i))
			return (struct stack_site){find_representative(s, i, f.object), f.rank,
						   true};
		if (f.rank == RANK_SITE)
			f.rank = RANK_UNNAMED;
		if (i == 0 || wrapper_is_better(f.rank, best.rank))
			best = (struct stack_site){.frame = i, .rank = f.rank};
		if (f.rank == RANK_THREAD)
			break;
	}
	return best;
}
