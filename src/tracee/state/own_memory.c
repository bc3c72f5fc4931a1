/* There are few areas, so they are searched linearly. */
#include "tracee/state/own_memory.h"

#include "base/log.h"
#include "tracee/state/space.h"

struct own_memory own_memory_clone(const struct own_memory *from)
{
	struct own_memory own = {.mapped = from->mapped};

	CHECK(from->shared_size <= UINT32_MAX);
	for (size_t i = 0; i < from->areas.count; i++) {
		struct stub_area *a = vec_add(&own.areas);
		*a = from->areas.data[i];
		if (a->saved)
			a->saved = xmemdup(a->saved, a->size);
	}
	if (from->shared)
		*vec_add(&own.areas) = (struct stub_area){
			.start = from->shared, .size = (uint32_t)from->shared_size,
			.used = (uint32_t)from->shared_size, .is_pads = true, .is_memory = true,
		};
	return own;
}

void own_memory_clear(struct own_memory *own)
{
	for (size_t i = 0; i < own->areas.count; i++)
		free(own->areas.data[i].saved);
	own->areas.count = 0;
	own->shared = own->shared_size = 0;
}

void own_memory_deinit(struct own_memory *own)
{
	own_memory_clear(own);
	vec_deinit(&own->areas);
}

const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		if (addr - s->own.areas.data[i].start < s->own.areas.data[i].size)
			return &s->own.areas.data[i];
	}
	return NULL;
}

bool space_is_own(const struct address_space *s, taddr_t addr)
{
	const struct stub_area *a = space_find_area(s, addr);
	return (a && !a->is_slack) || addr - s->own.shared < s->own.shared_size;
}
