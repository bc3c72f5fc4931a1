/*
 * Recognizes arenas by their contents; glibc.h has the layout. Nothing read is trusted: lists are
 * bounded, and the bounds of a heap are verified by walking it.
 */
#include "malloc/glibc.h"

#include "base/alloc.h"
#include "arch/arch.h"

#define BINS 127u
/* Word offsets relative to the bins. */
#define NEXT 256u
#define SYSTEM_BYTES 259u
#define STATE_END 261u
#define TOP_BYTES 16u /* offsets before the bins */
#define DATA_MAX (UINT64_C(1) << 25) /* an object with more data is not a C library */
#define HEAP_MAX (UINT64_C(1) << 26)
#define ARENAS_MAX 4096u
#define HEAPS_MAX 65536u

/* The size of an arena up to its bins, by version. */
static const uint32_t heads[] = {112, 24, 104};

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
	return word >= PAGE_SIZE_MIN && word >> ARCH_ADDRESS_BITS == 0 && word % 16 == 0;
}

/* -- heaps -- */

/* The heap ends with its last chunk. */
static bool end_of_top(const struct arena_search *s, taddr_t top, taddr_t *end_out)
{
	uint64_t head;

	if (!may_be_chunk(top) || !read_word(s, top + sizeof(head), &head))
		return false;
	return !__builtin_add_overflow(top, head & ~UINT64_C(7), end_out) && *end_out > top;
}

static void add_main_heap(const struct arena_search *s, taddr_t bins)
{
	struct { uint64_t top, last_remainder;
	} head;
	uint64_t bytes;
	taddr_t end;

	if (!read_all(s, bins - TOP_BYTES, &head, sizeof(head)) ||
	    !read_word(s, bins + SYSTEM_BYTES * sizeof(bytes), &bytes) ||
	    !end_of_top(s, head.top, &end) || bytes > end)
		return;
	*vec_add(&s->found->heaps) = (struct arena_heap){
		.start = ROUND_UP(end - bytes, UINT64_C(16)), .end = end, .top = head.top,
		.is_main = true};
}

static taddr_t heap_of(taddr_t addr)
{
	return ROUND_DOWN(addr, HEAP_MAX);
}

/*
 * Follows the list from the heap that contains the top chunk back to the one that contains the
 * arena.
 */
static void add_heaps(const struct arena_search *s, taddr_t arena)
{
	taddr_t bins = arena + s->head, first = heap_of(arena), top;

	if (!read_word(s, bins - TOP_BYTES, &top) || !may_be_chunk(top))
		return;
	for (taddr_t heap = heap_of(top); s->found->heaps.count < HEAPS_MAX;) {
		struct heap_info info;
		taddr_t start = heap + (arena - first);

		if (!read_all(s, heap, &info, sizeof(info)) || info.arena != arena ||
		    info.size > HEAP_MAX)
			return;
		if (heap == first) /* the arena precedes the chunks */
			start = ROUND_UP(bins + STATE_END * sizeof(uint64_t), UINT64_C(16));
		taddr_t limit = heap + info.size, end;

		if (!top || !end_of_top(s, top, &end) || end > limit)
			end = limit;
		*vec_add(&s->found->heaps) = (struct arena_heap){
			.start = start, .end = end, .limit = limit, .top = top};
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
		bool is_empty = bins[i] == addr + i * sizeof(*bins) - TOP_BYTES;

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
		    !read_word(s, next + s->head + NEXT * sizeof(next), &next))
			return false;
	}
	*count_out = count;
	return true;
}

static void add_state(const struct arena_search *s, taddr_t arena)
{
	taddr_t end = arena + s->head + STATE_END * sizeof(uint64_t);

	*vec_add(&s->found->states) = (struct addr_range){arena, end};
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
		taddr_t next = bins[NEXT], arena = addr - heads[i];
		uint32_t others;

		s->head = heads[i];
		if (!is_ring(s, arena, next, &others))
			continue;
		add_state(s, arena);
		add_main_heap(s, addr);
		while (others-- > 0) {
			add_state(s, next);
			add_heaps(s, next);
			if (!read_word(s, next + s->head + NEXT * sizeof(next), &next))
				break;
		}
		return true;
	}
	return false;
}

static bool is_empty_bin(const uint64_t *word, taddr_t addr)
{
	return word[0] == addr - TOP_BYTES && word[1] == word[0];
}

/*
 * An empty list shows where an arena may be. Which of the 127 lists it is follows from the
 * others.
 */
static void search_words(struct arena_search *s, taddr_t addr, const uint64_t *word, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		if (!is_empty_bin(&word[i], addr + i * sizeof(*word)))
			continue;
		for (size_t back = 0; back < 2 * BINS && back <= i; back += 2) {
			size_t bins = i - back;

			if (bins + STATE_END > count ||
			    !add_main(s, &word[bins], addr + bins * sizeof(*word)))
				continue;
			i = bins + STATE_END;
			break;
		}
	}
}

void arenas_search(struct arenas *a, taddr_t start, taddr_t end, memory_read_fn *read, void *ctx)
{
	struct arena_search s = {.found = a, .read = read, .ctx = ctx};

	if (start >= end || end - start > DATA_MAX)
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

	if (a->states.count > 1)
		qsort(a->states.data, a->states.count, sizeof(*a->states.data), taddr_compare);
	if (a->heaps.count > 1)
		qsort(a->heaps.data, a->heaps.count, sizeof(*a->heaps.data), taddr_compare);
	for (size_t i = 0; i < a->heaps.count; i++) /* lists of a corrupt arena may overlap */
		if (kept == 0 || a->heaps.data[i].start >= a->heaps.data[kept - 1].end)
			a->heaps.data[kept++] = a->heaps.data[i];
	a->heaps.count = kept;
}

void arenas_deinit(struct arenas *a)
{
	vec_deinit(&a->states);
	vec_deinit(&a->heaps);
}
