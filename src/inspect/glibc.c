/*
 * Arenas and heaps. See glibc.h.
 */
#include "inspect/glibc.h"

#include <string.h>

#include "inspect/glibc_main.h"
#include "inspect/glibc_params.h"

#define FLAGS_AT 4u
#define FASTBINS_AT 16u
/* relative to the bins */
#define TOP_BEFORE 16u
#define THREADS_AT 2064u
#define SYSTEM_AT 2072u
#define MOST_SYSTEM_AT 2080u
#define STATE_END 2088u
#define STATE_MAX 2200u
#define IS_NOT_CONTIGUOUS 2u
#define HEAP_MAX (UINT64_C(1) << 26)

static ssize_t read_for_search(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return memory_read(ctx, addr, buf, size) ? (ssize_t)size : -1;
}

static uint64_t word_at(const uint8_t *state, size_t offset)
{
	uint64_t word;

	memcpy(&word, state + offset, sizeof(word));
	return word;
}

static bool is_in(const struct glibc_range *data, size_t count, taddr_t addr)
{
	for (size_t i = 0; i < count; i++)
		if (addr >= data[i].start && addr < data[i].end)
			return true;
	return false;
}

/* Where the bins are in an arena of @size bytes; 0 if that is no known size. */
static uint32_t bins_in(uint64_t size)
{
	uint64_t at = size - STATE_END;

	return at == GLIBC_BINS_AT || at == GLIBC_BINS_AT_NO_FAST ? (uint32_t)at : 0;
}

static void add_arena(struct inspect_memory *m, const struct heap_part *s, bool is_main,
		      struct glibc *out)
{
	uint8_t state[STATE_MAX];
	uint32_t flags, bins = bins_in(s->end - s->start);

	if (!memory_read(m, s->start, state, s->end - s->start))
		return;
	struct glibc_arena *a = vec_add(&out->arenas);

	memcpy(&flags, state + FLAGS_AT, sizeof(flags));
	*a = (struct glibc_arena){
		.addr = s->start, .size = s->end - s->start, .is_main = is_main,
		.is_contiguous = !(flags & IS_NOT_CONTIGUOUS),
		.top = word_at(state, bins - TOP_BEFORE), .unsorted = word_at(state, bins),
		.unsorted_head = s->start + bins - TOP_BEFORE,
		.threads = word_at(state, bins + THREADS_AT),
		.system_bytes = word_at(state, bins + SYSTEM_AT),
		.most_system_bytes = word_at(state, bins + MOST_SYSTEM_AT),
	};
	memcpy(&flags, state, sizeof(flags));
	a->is_locked = flags != 0;
	for (size_t i = 0; i < GLIBC_FASTBINS && bins == GLIBC_BINS_AT; i++)
		a->fastbin[i] = word_at(state, FASTBINS_AT + i * sizeof(uint64_t));
}

/* Moves the main arena, the only one in a library's data, to the front. */
static void add_arenas(struct inspect_memory *m, const struct arenas *found,
		       const struct glibc_range *data, size_t count, struct glibc *out)
{
	for (int is_main = 1; is_main >= 0; is_main--)
		for (size_t i = 0; i < found->states.count; i++) {
			const struct heap_part *s = &found->states.data[i];

			if (bins_in(s->end - s->start) &&
			    is_in(data, count, s->start) == (bool)is_main)
				add_arena(m, s, is_main, out);
		}
}

/* The index of the arena that owns @h; count if none does. */
static size_t arena_of(struct inspect_memory *m, const struct glibc *g, const struct arena_heap *h)
{
	uint64_t arena = 0;

	if (h->is_main)
		return g->arenas.count > 0 && g->arenas.data[0].is_main ? 0 : g->arenas.count;
	memory_read_word(m, ROUND_DOWN(h->start, HEAP_MAX), &arena);
	for (size_t i = 0; i < g->arenas.count; i++)
		if (!g->arenas.data[i].is_main && g->arenas.data[i].addr == arena)
			return i;
	return g->arenas.count;
}

static void add_heaps(struct inspect_memory *m, const struct arenas *found, struct glibc *out)
{
	for (size_t i = 0; i < found->heaps.count; i++) {
		const struct arena_heap *h = &found->heaps.data[i];
		size_t arena = arena_of(m, out, h);

		if (arena == out->arenas.count)
			continue;
		struct glibc_arena *a = &out->arenas.data[arena];
		taddr_t start = a->is_main ? h->start : ROUND_DOWN(h->start, HEAP_MAX);
		taddr_t end = a->is_main ? h->end : h->limit;

		*vec_add(&out->heaps) = (struct glibc_heap){
			.map_start = start, .start = h->start, .end = end, .top = h->top,
			.arena = (uint32_t)arena, .is_main = a->is_main};
		a->found_bytes += end - start;
	}
}

void glibc_find(struct inspect_memory *m, const struct glibc_range *data, size_t count,
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
	add_heaps(m, &found, out);
	arenas_deinit(&found);
	glibc_params_find(m, data, count, out);
}

void glibc_deinit(struct glibc *g)
{
	vec_deinit(&g->arenas);
	vec_deinit(&g->heaps);
}

static const struct glibc_heap *heap_of(const struct glibc *g, taddr_t chunk)
{
	size_t i = vec_search(&g->heaps, e, e->end <= chunk);

	return i < g->heaps.count && g->heaps.data[i].start <= chunk ? &g->heaps.data[i] : NULL;
}

bool glibc_is_chunk(struct inspect_memory *m, const struct glibc *g, taddr_t chunk,
		    uint64_t *size_out)
{
	const struct glibc_heap *h = chunk % 16 == 0 ? heap_of(g, chunk) : NULL;
	uint64_t head;

	if (!h || !memory_read_word(m, chunk + sizeof(head), &head))
		return false;
	uint64_t size = head & ~(uint64_t)GLIBC_FLAGS;

	if (head & GLIBC_IS_MMAPPED || size < GLIBC_CHUNK_MIN || size % 16 || size > h->end - chunk)
		return false;
	*size_out = size;
	return true;
}
