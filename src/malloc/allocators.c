/*
 * The table of allocators. The first that has blocks in use is taken: a program may have libraries
 * of several.
 */
#include "malloc/allocators.h"

#include <string.h>

static const struct {
	const char *name;
	bool (*find)(const struct allocator_input *in, struct allocator *out);
} known[] = {
	{"musl", musl_find},
	{"musl", musl_old_find},
	{"jemalloc", jemalloc_find},
	{"tcmalloc", tcmalloc_find},
	{"mimalloc", mimalloc_find},
	{"mimalloc", mimalloc3_find},
};

bool allocator_is_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(known[i].name, name) == 0)
			return true;
	return false;
}

static bool has_live(const struct slabs *p)
{
	for (size_t n = 0; n < p->list.count; n++)
		for (uint32_t i = 0; i < slab_at(p, n)->places; i++)
			if (slabs_state(p, slab_at(p, n), i) == PLACE_LIVE)
				return true;
	return false;
}

void allocator_find(const struct allocator_input *in, struct allocator *out)
{
	const struct slabs none = {.most = slabs_most(in->memory->pages), .row_live = ROW_LIVE,
				   .row_free = ROW_BIN, .row_own = ROW_OWN};
	struct allocator idle = {0};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		*out = (struct allocator){.slabs = none};
		if (!known[i].find(in, out)) {
			allocator_deinit(out);
			continue;
		}
		out->name = known[i].name;
		if (has_live(&out->slabs)) {
			allocator_deinit(&idle);
			return;
		}
		allocator_deinit(&idle);
		idle = *out;
	}
	*out = idle;
}

void allocator_deinit(struct allocator *a)
{
	slabs_deinit(&a->slabs);
	*a = (struct allocator){0};
}
