/* memusage's mappings: calls of mmap, mremap and munmap by row, and their live bytes. */
#include "profile/memusage_maps.h"

#include <sys/mman.h>

#include "base/heap_function.h"
#include "profile/memusage_internal.h"

static void sub_unmapped(void *ctx, uint32_t leaf, uint64_t bytes)
{
	struct memusage *m = ctx;
	(void)leaf;
	m->numbers.live -= bytes;
}

/*
 * The @size bytes at @addr, and the pages that contain them; false if there are none. The requested
 * bytes become live; whole pages are removed, as in the kernel.
 */
static bool range_of(taddr_t addr, uint64_t size, taddr_t *end_out, taddr_t *pages_end_out)
{
	taddr_t end;
	if (size == 0 || __builtin_add_overflow(addr, size, &end) ||
	    end > UINT64_MAX - PAGE_SIZE_MIN)
		return false;
	*end_out = end;
	*pages_end_out = ROUND_UP(end, PAGE_SIZE_MIN);
	return true;
}

static void remove_map(struct memusage *m, taddr_t addr, uint64_t size)
{
	taddr_t end, pages_end;
	if (range_of(addr, size, &end, &pages_end))
		pages_remove(&m->maps, ROUND_DOWN(addr, PAGE_SIZE_MIN), pages_end, sub_unmapped, m);
}

static void add_map(struct memusage *m, taddr_t addr, uint64_t size)
{
	taddr_t end, pages_end;
	if (!range_of(addr, size, &end, &pages_end))
		return;
	remove_map(m, addr, size); /* MAP_FIXED over another mapping */
	pages_add(&m->maps, addr, end, 0);
	m->numbers.live += size;
}

static void on_mmap(struct memusage *m, const struct event *ev)
{
	uint64_t prot = ev->align & UINT32_MAX, flags = ev->align >> 32;
	enum memusage_row row = flags & MAP_ANONYMOUS ? MEMUSAGE_MMAP_ANONYMOUS :
				prot & PROT_WRITE ? MEMUSAGE_MMAP_WRITE : MEMUSAGE_MMAP_READ;
	m->numbers.row[row].calls++;
	count_bytes(m, row, countable(ev->size));
	count_size(m, ev->size, m->sample_interval ? ESTIMATE_UNIT : 1);
	m->numbers.row[row].failed += !ev->addr;
	if (ev->addr)
		add_map(m, ev->addr, ev->size);
}

static void on_mremap(struct memusage *m, const struct event *ev)
{
	struct memusage_numbers *n = &m->numbers;
	uint64_t old_size = ev->align;
	n->row[MEMUSAGE_MREMAP].calls++;
	count_bytes(m, MEMUSAGE_MREMAP, countable(ev->size) > old_size ? ev->size - old_size : 0);
	count_size(m, ev->size, m->sample_interval ? ESTIMATE_UNIT : 1);
	n->row[MEMUSAGE_MREMAP].failed += !ev->addr;
	if (!ev->addr)
		return;
	n->map_same_place += ev->addr == ev->old_addr;
	n->map_shrunk += ev->size < old_size;
	remove_map(m, ev->old_addr, old_size); /* 0 for a second view: its old size is 0 */
	add_map(m, ev->addr, ev->size);
}

static void on_munmap(struct memusage *m, const struct event *ev)
{
	m->numbers.row[MEMUSAGE_MUNMAP].calls++;
	m->numbers.row[MEMUSAGE_MUNMAP].failed += !ev->addr;
	if (!ev->addr)
		return;
	count_bytes(m, MEMUSAGE_MUNMAP, ev->size);
	remove_map(m, ev->addr, ev->size);
}

void memusage_mapping_call(struct memusage *m, const struct event *ev)
{
	if (ev->function == FUNCTION_MMAP)
		on_mmap(m, ev);
	else if (ev->function == FUNCTION_MREMAP)
		on_mremap(m, ev);
	else
		on_munmap(m, ev);
}
