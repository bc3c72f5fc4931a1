/* See stop_memory.h. */
#include "session/runtimes/stop_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "tracee/state/space.h"

#define CACHE_PAGES 256u

struct stop_memory {
	struct address_space *space;
	taddr_t page[CACHE_PAGES]; /* 0 = none */
	bool is_readable[CACHE_PAGES]; /* as many words on a stack are no addresses as are some */
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

/* NULL: it cannot be read. */
static const uint8_t *cached_page(struct stop_memory *m, taddr_t page)
{
	size_t i = hash_u64(page) % CACHE_PAGES;

	if (m->page[i] != page) {
		m->page[i] = page;
		m->is_readable[i] = space_read(m->space, page, m->data[i], PAGE_SIZE_MIN) == 0;
	}
	return m->is_readable[i] ? m->data[i] : NULL;
}

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct stop_memory *m = ctx;
	taddr_t page = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);

	if (!page || size > PAGE_SIZE_MIN - (addr - page))
		return space_read(m->space, addr, buf, size) == 0;
	const uint8_t *data = cached_page(m, page);

	if (data)
		memcpy(buf, data + (addr - page), size);
	return data;
}

struct language_memory stop_memory_reader(struct stop_memory *m)
{
	return (struct language_memory){read_memory, m};
}
