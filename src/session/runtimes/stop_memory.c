/* See stop_memory.h. */
#include "session/runtimes/stop_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "tracee/state/space.h"

#define CACHE_PAGES 64u

struct stop_memory {
	struct address_space *space;
	taddr_t page[CACHE_PAGES]; /* 0 = none */
	uint8_t data[CACHE_PAGES][PAGE_SIZE_MIN];
};

struct stop_memory *stop_memory_new(struct address_space *space)
{
	struct stop_memory *m = xcalloc(1, sizeof(*m));

	m->space = space;
	return m;
}

void stop_memory_free(struct stop_memory *m)
{
	free(m);
}

void stop_memory_forget(struct stop_memory *m)
{
	memset(m->page, 0, sizeof(m->page));
}

static const uint8_t *cached_page(struct stop_memory *m, taddr_t page)
{
	size_t i = hash_u64(page) % CACHE_PAGES;

	if (m->page[i] != page) {
		m->page[i] = 0;
		if (space_read(m->space, page, m->data[i], PAGE_SIZE_MIN) != 0)
			return NULL;
		m->page[i] = page;
	}
	return m->data[i];
}

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct stop_memory *m = ctx;
	taddr_t page = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
	const uint8_t *data = size <= PAGE_SIZE_MIN - (addr - page) ? cached_page(m, page) : NULL;

	if (!data)
		return space_read(m->space, addr, buf, size) == 0;
	memcpy(buf, data + (addr - page), size);
	return true;
}

struct language_memory stop_memory_reader(struct stop_memory *m)
{
	return (struct language_memory){read_memory, m};
}
