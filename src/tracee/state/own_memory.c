/* There are few areas, so they are searched linearly. */
#include "tracee/state/own_memory.h"

#include <string.h>

#include "base/log.h"
#include "tracee/state/space.h"

struct stub_area *own_memory_add_code(struct own_memory *own, taddr_t start, uint32_t size)
{
	struct stub_area *a = vec_add(&own->areas);
	*a = (struct stub_area){
		.start = start, .size = size, .used = size, .contents = xcalloc(1, size)};
	return a;
}

void own_memory_note(struct stub_area *a, taddr_t addr, const void *bytes, size_t size)
{
	uint64_t at = addr - a->start;
	if (!a->contents || at >= a->size)
		return;
	size = MIN(size, a->size - at);
	memcpy(a->contents + at, bytes, size);
	a->written = MAX(a->written, (uint32_t)(at + size));
}

void own_memory_give_up(struct stub_area *a)
{
	free(a->saved);
	free(a->contents);
	a->saved = a->contents = NULL;
	a->size = a->used = a->written = 0;
}

static uint8_t *copy_contents(const struct stub_area *a)
{
	return a->contents ? memcpy(xcalloc(1, a->size), a->contents, a->written) : NULL;
}

struct own_memory own_memory_clone(const struct own_memory *from)
{
	struct own_memory own = {.mapped = from->mapped};

	CHECK(from->shared_size <= UINT32_MAX);
	for (size_t i = 0; i < from->areas.count; i++) {
		struct stub_area *a = vec_add(&own.areas);
		*a = from->areas.data[i];
		if (a->saved)
			a->saved = xmemdup(a->saved, a->size);
		a->contents = copy_contents(a);
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
	for (size_t i = 0; i < own->areas.count; i++) {
		free(own->areas.data[i].saved);
		free(own->areas.data[i].contents);
	}
	own->areas.count = 0;
	own->shared = own->shared_size = 0;
}

void own_memory_deinit(struct own_memory *own)
{
	own_memory_clear(own);
	vec_deinit(&own->areas);
}

struct stub_area *own_memory_find(const struct own_memory *own, taddr_t addr)
{
	for (size_t i = 0; i < own->areas.count; i++) {
		if (addr - own->areas.data[i].start < own->areas.data[i].size)
			return &own->areas.data[i];
	}
	return NULL;
}

const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr)
{
	return own_memory_find(&s->own, addr);
}

bool space_is_own(const struct address_space *s, taddr_t addr)
{
	const struct stub_area *a = space_find_area(s, addr);
	return (a && !a->is_slack) || addr - s->own.shared < s->own.shared_size;
}
