/*
 * The arenas of glibc's malloc with their heaps, and its parameters. Each is verified, and the
 * main arena's heap is searched for if the arena does not lead to it.
 */
#include "malloc/glibc.h"

#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define BINS 127u
/* Offsets in an arena: from its start, */
#define FLAGS_AT 4u
#define FASTBINS_AT 16u
/* and from its bins, which are in the same order in all versions. */
#define TOP_BEFORE 16u
#define NEXT_AT 2048u
#define THREADS_AT 2064u
#define SYSTEM_AT 2072u
#define MOST_SYSTEM_AT 2080u
#define STATE_END 2088u
#define IS_NOT_CONTIGUOUS 2u
#define HEAP_MAX (UINT64_C(1) << 26)
#define SEARCHED_MAX (UINT64_C(1) << 25) /* an object with more data is not a C library */
#define ARENAS_MAX 4096u
#define HEAPS_MAX 65536u

static struct glibc_heap main_heap(taddr_t start, taddr_t end, taddr_t top)
{
	return (struct glibc_heap){.start = start, .end = end, .top_end = end,
				   .map_start = start, .top = top, .is_main = true};
}

/*
 * Arenas are recognized by their contents; glibc.h has the layout. Nothing read is trusted: lists
 * are bounded, and the bounds of a heap are verified by walking it.
 */

/* The size of an arena up to its bins, by version. */
static const uint32_t heads[] = {GLIBC_BINS_AT, GLIBC_BINS_AT_NO_FAST, 104};

struct arena_search {
	struct arenas *found;
	memory_read_fn *read;
	void *ctx;
	uint32_t head;
};

/* The header of each heap except the main arena's. */
struct heap_info {
	uint64_t arena, before, size;
};

static bool read_all(const struct arena_search *s, taddr_t addr, void *buf, size_t size)
{
	return s->read(s->ctx, addr, buf, size) == (ssize_t)size;
}

static bool read_word(const struct arena_search *s, taddr_t addr, uint64_t *out)
{
	return read_all(s, addr, out, sizeof(*out));
}

static bool may_be_chunk(uint64_t word)
{
	return word >= PAGE_SIZE_MIN && word >> ARCH_ADDRESS_BITS == 0 && word % GLIBC_ALIGN == 0;
}

/* -- heaps -- */

/* The heap ends with its last chunk. */
static bool end_of_top(const struct arena_search *s, taddr_t top, taddr_t *end_out)
{
	uint64_t head;

	if (!may_be_chunk(top) || !read_word(s, top + sizeof(head), &head))
		return false;
	return !__builtin_add_overflow(top, head & ~(uint64_t)GLIBC_FLAGS, end_out) &&
	       *end_out > top;
}

static void add_main_heap(const struct arena_search *s, taddr_t bins)
{
	struct { uint64_t top, last_remainder;
	} head;
	uint64_t bytes;
	taddr_t end;

	if (!read_all(s, bins - TOP_BEFORE, &head, sizeof(head)) ||
	    !read_word(s, bins + SYSTEM_AT, &bytes) ||
	    !end_of_top(s, head.top, &end) || bytes > end)
		return;
	*vec_add(&s->found->heaps) =
		main_heap(ROUND_UP(end - bytes, (taddr_t)GLIBC_ALIGN), end, head.top);
}

/*
 * Follows the list from the heap that contains the top chunk back to the one that contains the
 * arena.
 */
static void add_arena_heaps(const struct arena_search *s, taddr_t arena)
{
	taddr_t bins = arena + s->head, first = ROUND_DOWN(arena, HEAP_MAX), top;

	if (!read_word(s, bins - TOP_BEFORE, &top) || !may_be_chunk(top))
		return;
	for (taddr_t heap = ROUND_DOWN(top, HEAP_MAX); s->found->heaps.count < HEAPS_MAX;) {
		struct heap_info info;
		taddr_t start = heap + (arena - first);

		if (!read_all(s, heap, &info, sizeof(info)) || info.arena != arena ||
		    info.size > HEAP_MAX)
			return;
		if (heap == first) /* the arena precedes the chunks */
			start = ROUND_UP(bins + STATE_END, (taddr_t)GLIBC_ALIGN);
		taddr_t end = heap + info.size, top_end;

		if (!top || !end_of_top(s, top, &top_end) || top_end > end)
			top_end = end;
		*vec_add(&s->found->heaps) = (struct glibc_heap){
			.start = start, .end = end, .top_end = top_end, .map_start = heap,
			.top = top, .owner = arena};
		if (heap == first)
			return;
		heap = info.before;
		top = 0;
	}
}

/* -- arenas -- */

static bool is_bins(const uint64_t *bins, taddr_t addr)
{
	for (uint32_t i = 0; i < 2 * BINS; i += 2) {
		bool is_empty = bins[i] == addr + i * sizeof(*bins) - TOP_BEFORE;

		if (is_empty ? bins[i + 1] != bins[i] :
			       !may_be_chunk(bins[i]) || !may_be_chunk(bins[i + 1]))
			return false;
	}
	return true;
}

/* Whether the arenas after @next lead back to @main; *count_out is their number. */
static bool is_ring(const struct arena_search *s, taddr_t main, taddr_t next, uint32_t *count_out)
{
	uint32_t count = 0;

	while (next != main) {
		if (++count > ARENAS_MAX || next % sizeof(next) ||
		    !read_word(s, next + s->head + NEXT_AT, &next))
			return false;
	}
	*count_out = count;
	return true;
}

static void add_state(const struct arena_search *s, taddr_t arena)
{
	*vec_add(&s->found->states) =
		(struct addr_range){arena, arena + s->head + STATE_END};
}

/*
 * Adds the main arena whose bins are the words @bins, at address @addr, if that is what they
 * are.
 */
static bool add_main(struct arena_search *s, const uint64_t *bins, taddr_t addr)
{
	if (!is_bins(bins, addr))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		taddr_t next = bins[NEXT_AT / sizeof(*bins)], arena = addr - heads[i];
		uint32_t others;

		s->head = heads[i];
		if (!is_ring(s, arena, next, &others))
			continue;
		add_state(s, arena);
		add_main_heap(s, addr);
		while (others-- > 0) {
			add_state(s, next);
			add_arena_heaps(s, next);
			if (!read_word(s, next + s->head + NEXT_AT, &next))
				break;
		}
		return true;
	}
	return false;
}

/*
 * An empty list shows where an arena may be. Which of the 127 lists it is follows from the
 * others.
 */
static void search_words(struct arena_search *s, taddr_t addr, const uint64_t *word, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		if (word[i] != addr + i * sizeof(*word) - TOP_BEFORE || word[i + 1] != word[i])
			continue; /* not an empty list */
		for (size_t back = 0; back < 2 * BINS && back <= i; back += 2) {
			size_t bins = i - back;

			if (bins + STATE_END / sizeof(*word) > count ||
			    !add_main(s, &word[bins], addr + bins * sizeof(*word)))
				continue;
			i = bins + STATE_END / sizeof(*word);
			break;
		}
	}
}

void arenas_search(struct arenas *a, taddr_t start, taddr_t end, memory_read_fn *read, void *ctx)
{
	struct arena_search s = {.found = a, .read = read, .ctx = ctx};

	if (start >= end || end - start > SEARCHED_MAX)
		return;
	uint64_t *word = huge_alloc(end - start);
	ssize_t got = read(ctx, start, word, end - start);

	if (got > 0)
		search_words(&s, start, word, (size_t)got / sizeof(*word));
	huge_free(word, end - start);
}

void arenas_sort(struct arenas *a)
{
	size_t kept = 0;

	vec_sort(&a->states, taddr_compare);
	vec_sort(&a->heaps, taddr_compare);
	for (size_t i = 0; i < a->heaps.count; i++) /* lists of a corrupt arena may overlap */
		if (kept == 0 || a->heaps.data[i].start >= a->heaps.data[kept - 1].top_end)
			a->heaps.data[kept++] = a->heaps.data[i];
	a->heaps.count = kept;
}

void arenas_deinit(struct arenas *a)
{
	vec_deinit(&a->states);
	vec_deinit(&a->heaps);
}

/*
 * The heap of the main arena. It grows by brk; where it cannot, malloc uses mmap and leaves it
 * discontiguous from then on:
 *
 *	part     chunks, each after the one before, then two headers of 16 bytes
 *	...
 *	part     chunks up to the end of the top chunk, which may be in any of them
 *
 * A part from brk begins and ends anywhere, one from mmap at pages. No pointer leads to a part.
 */

/* Parts are recognized by chunks that lead to their end. */

/* a header at the end of a part, but the first of them */
#define LAST (GLIBC_FENCEPOST | GLIBC_IS_BEFORE_USED)
#define CHUNKS_MAX (UINT64_C(1) << 27) /* that are looked at */

struct part_search {
	struct inspect_memory *memory;
	struct arenas *found;
	taddr_t top;
	uint64_t chunks;        /* that may still be looked at */
	bool has_top;
};

/* The mappings around @addr that follow one another and have the same name. */
static struct addr_range mapped_around(const struct maps *maps, taddr_t addr)
{
	size_t at = vec_search(&maps->list, e, e->end <= addr), last = at;
	const struct map *m = maps->list.data;

	if (at == maps->list.count || m[at].start > addr)
		return (struct addr_range){0};
	while (at > 0 && m[at - 1].end == m[at].start && strcmp(m[at - 1].path, m[at].path) == 0)
		at--;
	while (last + 1 < maps->list.count && m[last + 1].start == m[last].end &&
	       strcmp(m[last + 1].path, m[last].path) == 0)
		last++;
	return (struct addr_range){m[at].start, m[last].end};
}

static uint64_t head_at(struct part_search *s, taddr_t chunk)
{
	uint64_t head;

	memcpy(&head, memory_peek(s->memory, chunk + sizeof(head), sizeof(head)), sizeof(head));
	return head;
}

/*
 * Where the part ends whose last headers begin at @at; 0 if none are there. They are two, or three
 * where less than a chunk was left.
 */
static taddr_t end_at(struct part_search *s, taddr_t at, taddr_t limit)
{
	uint32_t count = 0;

	for (; count < 3 && limit - at >= GLIBC_HEADER; count++, at += GLIBC_HEADER) {
		uint64_t head = head_at(s, at);

		if (head != LAST && (count > 0 || (head | GLIBC_IS_BEFORE_USED) != LAST))
			break;
	}
	return count >= 2 ? at : 0;
}

/* Where the part ends whose first chunk is at @start, before @limit; 0 = there is none. */
static taddr_t follow(struct part_search *s, taddr_t start, taddr_t limit)
{
	for (taddr_t at = start; limit - at >= GLIBC_HEADER && s->chunks > 0; s->chunks--) {
		uint64_t head = head_at(s, at), size = head & ~(uint64_t)GLIBC_FLAGS;

		if (size == GLIBC_FENCEPOST && at > start)
			return end_at(s, at, limit);
		if (size < GLIBC_CHUNK_MIN || size % GLIBC_ALIGN || size > limit - at ||
		    head & (GLIBC_IS_MMAPPED | GLIBC_IS_IN_HEAP) ||
		    (at == start && !(head & GLIBC_IS_BEFORE_USED)))
			return 0;
		at += size;
		if (at - size == s->top)
			return at;
	}
	return 0;
}

static void add_part(struct part_search *s, taddr_t start, taddr_t end)
{
	bool has_top = s->top >= start && s->top < end;

	*vec_add(&s->found->heaps) = main_heap(start, end, has_top ? s->top : 0);
	s->has_top |= has_top;
}

/* -- from brk -- */

static void search_brk(struct part_search *s, const struct map *m)
{
	taddr_t at = m->start;

	while (m->end - at >= GLIBC_CHUNK_MIN && s->chunks > 0) {
		taddr_t end = follow(s, at, m->end);

		if (end)
			add_part(s, at, end);
		at = ROUND_UP(end ? end : at + 1, (taddr_t)GLIBC_ALIGN);
	}
}

/* -- from mmap -- */

static bool is_in_heap(const struct part_search *s, taddr_t addr)
{
	for (size_t i = 0; i < s->found->heaps.count; i++)
		if (addr >= s->found->heaps.data[i].start &&
		    addr < s->found->heaps.data[i].top_end)
			return true;
	return false;
}

static void search_pages(struct part_search *s, const struct page_run *r, taddr_t limit,
			 taddr_t *at_io)
{
	for (taddr_t at = MAX(*at_io, r->start); at < r->end && s->chunks > 0;) {
		taddr_t end = is_in_heap(s, at) ? 0 : follow(s, at, limit);
		bool is_part = end && end % PAGE == 0;

		if (is_part)
			add_part(s, at, end);
		at = is_part ? end : at + PAGE;
		*at_io = at;
	}
}

static void search_mapped(struct part_search *s)
{
	const struct resident *pages = s->memory->pages;
	taddr_t at = 0;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];
		const struct map *m = maps_find(&pages->maps, r->start);

		if (m && m->is_write && map_is_anonymous(m))
			search_pages(s, r, mapped_around(&pages->maps, r->start).end, &at);
	}
}

/* -- the arena -- */

static void find_parts(struct inspect_memory *m, struct arenas *found, struct glibc *g)
{
	struct part_search s = {.memory = m, .found = found, .top = g->arenas.data[0].top,
			   .chunks = CHUNKS_MAX};
	const struct maps *maps = &m->pages->maps;
	size_t kept = 0;

	for (size_t i = 0; i < found->heaps.count; i++)
		if (!found->heaps.data[i].is_main)
			found->heaps.data[kept++] = found->heaps.data[i];
	found->heaps.count = kept;
	for (size_t i = 0; i < maps->list.count; i++)
		if (strcmp(maps->list.data[i].path, "[heap]") == 0)
			search_brk(&s, &maps->list.data[i]);
	search_mapped(&s);
	g->lost_heaps += !s.has_top;
}

/*
 * The size of the top chunk, where the main heap's end is from, may be overwritten. The heap is
 * then all memory up to the program break, and the walk fails at the top.
 */
static void repair(const struct maps *maps, struct arenas *found, struct glibc *g)
{
	const struct glibc_arena *a = g->arenas.data;
	struct addr_range r = mapped_around(maps, a->top);
	size_t i = 0;

	while (i < found->heaps.count && found->heaps.data[i].top != a->top)
		i++;
	struct glibc_heap *h = i < found->heaps.count ? &found->heaps.data[i] : NULL;

	if (h && h->top_end % PAGE == 0)
		return;
	if (r.end == 0) {
		g->lost_heaps++;
		return;
	}
	if (!h)
		h = vec_add(&found->heaps);
	taddr_t start = ROUND_UP(r.end - MIN(r.end, a->system_bytes), (taddr_t)GLIBC_ALIGN);

	*h = main_heap(MAX(r.start, start), r.end, a->top);
}

/*
 * Replaces what is known of the main heap in @found by what is there, if that differs. A heap that
 * is not found is lost.
 */
static void glibc_main_check(struct inspect_memory *m, struct arenas *found, struct glibc *g)
{
	const struct glibc_arena *a = g->arenas.data;

	if (g->arenas.count == 0 || !a->is_main || a->system_bytes == 0)
		return;
	if (a->is_contiguous)
		repair(&m->pages->maps, found, g);
	else
		find_parts(m, found, g);
}

/* glibc's parameters of malloc, mp_. */

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

#define DATA_MAX (UINT64_C(1) << 20) /* libc's data has 75 kB */
#define PAR_MAX 144u
#define TCACHE_BYTES_MAX 1032u
#define TCACHE_BINS_MAX 64u
#define TCACHE_CHUNK_MAX (UINT64_C(1) << 22)
#define ARENA_TEST_MAX 4096u
#define THRESHOLD_MIN (UINT64_C(128) << 10)
#define THRESHOLD_MAX (UINT64_C(32) << 20)
#define ADDRESS_MAX (UINT64_C(1) << 57)

struct params_layout {
	uint32_t mmaps, mmapped, tcache; /* offsets */
};
static const struct params_layout layouts[] = {{60, 80, 104}, {68, 88, 112}, {40, 56, 80}};

static void take_params(const uint8_t *p, const struct params_layout *l, struct glibc_params *out)
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

		bool is_first = h->is_main &&
				ROUND_UP(p->sbrk_base, (uint64_t)GLIBC_ALIGN) == h->start;

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
	return (MAX(size, (uint64_t)GLIBC_CHUNK_MIN) - GLIBC_CHUNK_MIN) / GLIBC_ALIGN + 1;
}

/* Since 2.42. */
static bool has_large_tcache(const struct glibc_params *p)
{
	uint64_t size = ROUND_DOWN(p->tcache_max_bytes, (uint64_t)GLIBC_ALIGN);

	return p->tcache_max_bytes - size <= 1 && size >= GLIBC_CHUNK_MIN &&
	       size < TCACHE_CHUNK_MAX &&
	       p->tcache_bins == MIN(bins_up_to(size), (uint64_t)TCACHE_BINS_MAX);
}

/* tcache_bins follows from tcache_max_bytes. */
static bool has_tcache(const struct glibc_params *p)
{
	uint64_t size = ROUND_UP(p->tcache_max_bytes + sizeof(uint64_t), (uint64_t)GLIBC_ALIGN);
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

static void search_params(const uint8_t *bytes, size_t size, struct glibc *g)
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

/* The one that has @addr, or NULL. */
static const struct addr_range *range_of(const struct addr_range *data, size_t count, taddr_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= data[i].start && addr < data[i].end)
			return &data[i];
	return NULL;
}

/*
 * Looks for mp_ near the main arena of @g, in the range of @data that contains the arena, and fills
 * in g->params.
 */
static void glibc_params_find(struct inspect_memory *m, const struct addr_range *data,
			      size_t count, struct glibc *g)
{
	if (g->arenas.count == 0 || !g->arenas.data[0].is_main)
		return;
	taddr_t main = g->arenas.data[0].addr;
	const struct addr_range *in = range_of(data, count, main);

	if (!in)
		return;
	taddr_t start = MAX(in->start, main - MIN(main, DATA_MAX / 2));
	taddr_t end = MIN(in->end, main + DATA_MAX / 2);
	uint8_t *bytes = xmalloc(end - start);

	if (memory_read(m, start, bytes, end - start))
		search_params(bytes, end - start, g);
	free(bytes);
}

/* -- arenas and heaps -- */

static ssize_t read_for_search(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return memory_read(ctx, addr, buf, size) ? (ssize_t)size : -1;
}

static void add_arena(struct inspect_memory *m, const struct addr_range *s, bool is_main,
		      struct glibc *out)
{
	uint8_t state[GLIBC_BINS_AT + STATE_END];
	uint64_t bins = s->end - s->start - STATE_END;
	uint32_t flags;

	if ((bins != GLIBC_BINS_AT && bins != GLIBC_BINS_AT_NO_FAST) ||
	    !memory_read(m, s->start, state, s->end - s->start))
		return;
	struct glibc_arena *a = vec_add(&out->arenas);

	memcpy(&flags, state + FLAGS_AT, sizeof(flags));
	*a = (struct glibc_arena){
		.addr = s->start, .size = s->end - s->start, .is_main = is_main,
		.is_contiguous = !(flags & IS_NOT_CONTIGUOUS),
		.top = load_u64(state + bins - TOP_BEFORE), .unsorted = load_u64(state + bins),
		.unsorted_head = s->start + bins - TOP_BEFORE,
		.threads = load_u64(state + bins + THREADS_AT),
		.system_bytes = load_u64(state + bins + SYSTEM_AT),
		.most_system_bytes = load_u64(state + bins + MOST_SYSTEM_AT),
	};
	memcpy(&flags, state, sizeof(flags));
	a->is_locked = flags != 0;
	for (size_t i = 0; i < GLIBC_FASTBINS && bins == GLIBC_BINS_AT; i++)
		a->fastbin[i] = load_u64(state + FASTBINS_AT + i * sizeof(uint64_t));
}

/* Moves the main arena, the only one in a library's data, to the front. */
static void add_arenas(struct inspect_memory *m, const struct arenas *found,
		       const struct addr_range *data, size_t count, struct glibc *out)
{
	for (int is_main = 1; is_main >= 0; is_main--)
		for (size_t i = 0; i < found->states.count; i++) {
			const struct addr_range *s = &found->states.data[i];

			if (!range_of(data, count, s->start) == !is_main)
				add_arena(m, s, is_main, out);
		}
}

/* The index of the arena that owns @h; count if none does. */
static size_t arena_of(const struct glibc *g, const struct glibc_heap *h)
{
	if (h->is_main)
		return g->arenas.count > 0 && g->arenas.data[0].is_main ? 0 : g->arenas.count;
	for (size_t i = 0; i < g->arenas.count; i++)
		if (!g->arenas.data[i].is_main && g->arenas.data[i].addr == h->owner)
			return i;
	return g->arenas.count;
}

static void add_heaps(const struct arenas *found, struct glibc *out)
{
	for (size_t i = 0; i < found->heaps.count; i++) {
		struct glibc_heap *h = &found->heaps.data[i];
		size_t arena = arena_of(out, h);

		if (arena == out->arenas.count)
			continue;
		h->arena = (uint32_t)arena;
		out->arenas.data[arena].found_bytes += h->end - h->map_start;
		*vec_add(&out->heaps) = *h;
	}
}

void glibc_find(struct inspect_memory *m, const struct addr_range *data, size_t count,
		struct glibc *out)
{
	struct arenas found = {0};

	*out = (struct glibc){0};
	for (size_t i = 0; i < count; i++)
		arenas_search(&found, data[i].start, data[i].end, read_for_search, m);
	arenas_sort(&found);
	add_arenas(m, &found, data, count, out);
	glibc_main_check(m, &found, out);
	arenas_sort(&found);
	add_heaps(&found, out);
	arenas_deinit(&found);
	glibc_params_find(m, data, count, out);
}

void glibc_deinit(struct glibc *g)
{
	vec_deinit(&g->arenas);
	vec_deinit(&g->heaps);
}

bool glibc_is_chunk(struct inspect_memory *m, const struct glibc *g, taddr_t chunk,
		    uint64_t *size_out)
{
	size_t i = vec_search(&g->heaps, e, e->end <= chunk);
	uint64_t head;

	if (chunk % GLIBC_ALIGN || i == g->heaps.count || g->heaps.data[i].start > chunk ||
	    !memory_read_word(m, chunk + sizeof(head), &head))
		return false;
	uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

	if (head & GLIBC_IS_MMAPPED || size < GLIBC_CHUNK_MIN || size % GLIBC_ALIGN ||
	    size > g->heaps.data[i].end - chunk)
		return false;
	*size_out = size;
	return true;
}
