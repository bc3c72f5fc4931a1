/*
 * No pointer leads to struct malloc_par, so it is recognized by relations between its fields:
 *
 *	          to 2.34  since 2.35  since 2.43
 *	trim_threshold  0     0     0
 *	top_pad         8     8     8
 *	mmap_threshold 16    16    16
 *	arena_test     24    24    24
 *	arena_max      32    32    32
 *	thp_mode        -     -    40     enum
 *	thp_pagesize    -    40    48
 *	hp_pagesize     -    48    56     then int hp_flags
 *	n_mmaps        40    60    68     int; then n_mmaps_max, max_n_mmaps, no_dyn_threshold
 *	mmapped_mem    56    80    88     then max_mmapped_mem, sbrk_base
 *	tcache_bins    80   104   112     then tcache_max_bytes, tcache_count, tcache_unsorted_limit
 *
 * tcache_bins counts the bins of small chunks only. tcache_max_bytes is, to 2.41, the size of the
 * largest block that is cached. Since 2.42 it is a limit: chunks are cached whose size is less. Its
 * default is 1032 in 2.42; 2.43 sets it to the size of the largest cached chunk plus 1.
 */
#include "inspect/glibc_params.h"

#include <string.h>

#define DATA_MAX (UINT64_C(1) << 20) /* libc's data has 75 kB */
#define PAR_MAX 144u
#define TCACHE_BYTES_MAX 1032u
#define TCACHE_BINS_MAX 64u
#define TCACHE_CHUNK_MAX (UINT64_C(1) << 22)
#define ARENA_TEST_MAX 4096u
#define THRESHOLD_MIN (UINT64_C(128) << 10)
#define THRESHOLD_MAX (UINT64_C(32) << 20)
#define ADDRESS_MAX (UINT64_C(1) << 57)

struct layout {
	uint32_t mmaps, mmapped, tcache; /* offsets */
};
static const struct layout layouts[] = {{60, 80, 104}, {68, 88, 112}, {40, 56, 80}};

static void take_params(const uint8_t *p, const struct layout *l, struct glibc_params *out)
{
	uint64_t head[5], mapped[3], tcache[3];
	uint32_t count[4];

	memcpy(head, p, sizeof(head));
	memcpy(count, p + l->mmaps, sizeof(count));
	memcpy(mapped, p + l->mmapped, sizeof(mapped));
	memcpy(tcache, p + l->tcache, sizeof(tcache));
	*out = (struct glibc_params){
		.is_known = count[3] <= 1, .trim_threshold = head[0], .top_pad = head[1],
		.mmap_threshold = head[2], .arena_test = head[3], .arena_max = head[4],
		.mmaps = count[0], .mmaps_max = count[1], .most_mmaps = count[2],
		.is_fixed = count[3] != 0, .mmapped_bytes = mapped[0],
		.most_mmapped_bytes = mapped[1], .sbrk_base = mapped[2],
		.tcache_bins = tcache[0], .tcache_max_bytes = tcache[1],
		.tcache_count = tcache[2]};
}

/* What dynamic thresholds can be. */
static bool has_dynamic_thresholds(const struct glibc_params *p)
{
	return !p->is_fixed && p->mmap_threshold >= THRESHOLD_MIN &&
	       p->mmap_threshold <= THRESHOLD_MAX &&
	       (p->trim_threshold == THRESHOLD_MIN ||
		p->trim_threshold == 2 * p->mmap_threshold);
}

/*
 * The main arena grows from sbrk_base on, if at all. Where it has left brk, that part may be empty
 * by now.
 */
static bool fits_arena(const struct glibc *g, const struct glibc_params *p)
{
	const struct glibc_arena *a = &g->arenas.data[0];

	for (size_t i = 0; i < g->heaps.count; i++) {
		const struct glibc_heap *h = &g->heaps.data[i];

		bool is_first = h->is_main && ROUND_UP(p->sbrk_base, UINT64_C(16)) == h->start;

		if (is_first || (h->is_main && a->is_contiguous))
			return is_first;
	}
	if (a->system_bytes == 0 && p->sbrk_base != 0)
		return false;
	return has_dynamic_thresholds(p) || (a->system_bytes == 0 && p->is_fixed);
}

/* Bins of small chunks of up to @size bytes: those of 32 bytes are in the first one. */
static uint64_t bins_up_to(uint64_t size)
{
	return (MAX(size, (uint64_t)GLIBC_CHUNK_MIN) - GLIBC_CHUNK_MIN) / 16 + 1;
}

/* Since 2.42. */
static bool has_large_tcache(const struct glibc_params *p)
{
	uint64_t size = ROUND_DOWN(p->tcache_max_bytes, UINT64_C(16));

	return p->tcache_max_bytes - size <= 1 && size >= GLIBC_CHUNK_MIN &&
	       size < TCACHE_CHUNK_MAX &&
	       p->tcache_bins == MIN(bins_up_to(size), (uint64_t)TCACHE_BINS_MAX);
}

/* tcache_bins follows from tcache_max_bytes. */
static bool has_tcache(const struct glibc_params *p)
{
	uint64_t size = ROUND_UP(p->tcache_max_bytes + sizeof(uint64_t), UINT64_C(16));
	bool is_small = p->tcache_max_bytes <= TCACHE_BYTES_MAX &&
			p->tcache_bins == bins_up_to(size);

	return (is_small || has_large_tcache(p)) && p->tcache_count <= UINT16_MAX;
}

static bool has_mmapped(const struct glibc_params *p)
{
	return p->mmaps <= p->most_mmaps && p->most_mmaps <= INT32_MAX &&
	       p->mmaps_max <= INT32_MAX && p->mmapped_bytes <= p->most_mmapped_bytes &&
	       p->most_mmapped_bytes <= ADDRESS_MAX && p->mmapped_bytes % PAGE_SIZE_MIN == 0 &&
	       p->mmapped_bytes >= p->mmaps * (uint64_t)PAGE_SIZE_MIN &&
	       (p->mmaps == 0) == (p->mmapped_bytes == 0);
}

static bool is_params(const struct glibc *g, const struct glibc_params *p)
{
	return p->is_known && has_tcache(p) && has_mmapped(p) && p->arena_test > 0 &&
	       p->arena_test <= ARENA_TEST_MAX && p->arena_max <= INT32_MAX && fits_arena(g, p);
}

static void search(const uint8_t *bytes, size_t size, struct glibc *g)
{
	for (size_t at = 0; at + PAR_MAX <= size; at += 16)
		for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
			struct glibc_params p;

			take_params(bytes + at, &layouts[i], &p);
			if (!is_params(g, &p))
				continue;
			g->params = p;
			return;
		}
}

void glibc_params_find(struct inspect_memory *m, const struct glibc_range *data, size_t count,
		       struct glibc *g)
{
	if (g->arenas.count == 0 || !g->arenas.data[0].is_main)
		return;
	taddr_t main = g->arenas.data[0].addr;

	for (size_t i = 0; i < count; i++) {
		taddr_t start = data[i].start, end = data[i].end;

		if (main < start || main >= end)
			continue;
		start = MAX(start, main - MIN(main, DATA_MAX / 2));
		end = MIN(end, main + DATA_MAX / 2);

		uint8_t *bytes = xmalloc(end - start);

		if (memory_read(m, start, bytes, end - start))
			search(bytes, end - start, g);
		free(bytes);
	}
}
