/* See pad_sampling.h. */
#include "tracee/pads/pads.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tracee/pads/pad_state.h"
#include "tracee/state/heap_sampling.h"
#include "tracee/state/target_state.h"

static uint64_t *distances(const struct pad_memory *m)
{
	return (uint64_t *)(void *)(m->base + PAD_DISTANCES_OFFSET);
}

/*
 * Midpoints of equally probable parts of the distribution: their mean differs from the interval by
 * 5 millionths; for a table of random distances it would be off by 1 / 256.
 */
void pads_prepare_sampling(struct target *t)
{
	const double count = 1u << PAD_DISTANCE_BITS;
	const double unit = (double)(t->options.samples.heap << PAD_SHIFT_MAX);

	if (t->pads->distances)
		return;
	t->pads->distances = xmalloc(PAD_DISTANCES_SIZE);
	for (uint32_t i = 0; i < 1u << PAD_DISTANCE_BITS; i++)
		t->pads->distances[i] = (uint64_t)(-log((i + 0.5) / count) * unit);
}

void pad_sampling_seed_slot(const struct pad_memory *m, uint32_t index)
{
	struct pad_slot *slot = pad_memory_slot(m, index);
	uint64_t random = hash_u64(m->sample_seed + index);

	slot->random = random;
	slot->left_shift = m->written.sample_shift;
	slot->left = pad_distance(distances(m)[pad_distance_index(random)], slot->left_shift);
}

static struct pad_filter *filter(const struct pad_memory *m)
{
	return (struct pad_filter *)(void *)(m->base + PAD_FILTER_OFFSET);
}

static void add_to_filter(void *ctx, taddr_t addr)
{
	pad_filter_add(filter(ctx), addr);
}

void pads_filter(struct address_space *s, taddr_t addr, bool is_sample)
{
	if (!s->pads)
		return;
	struct pad_filter *f = filter(&s->pads->memory);
	if (is_sample)
		pad_filter_add(f, addr);
	else if (pad_filter_take(f, addr) == PAD_FILTER_MAYBE)
		pad_filter_decrement(f, addr);
}

void pads_start_sampling(struct target *t, struct address_space *s)
{
	struct pad_memory *m = &s->pads->memory;

	if (!s->heap.sampling)
		return;
	pads_prepare_sampling(t);
	pad_memory_set_sample_interval(m, t->options.samples.heap);
	pad_memory_set_sample_shift(m, t->options.samples.shift);
	m->sample_seed = hash_u64(t->options.samples.seed ^ (uint64_t)s->id << 32);
	memcpy(distances(m), t->pads->distances, PAD_DISTANCES_SIZE);
	for (uint32_t i = 0; i < m->slots.used; i++)
		pad_sampling_seed_slot(m, i);
	heap_sampling_each(s->heap.sampling, add_to_filter, m);
}

uint8_t pads_slot_shift(const struct address_space *s, const struct pad_slot *slot)
{
	uint32_t sampled = __atomic_load_n(&slot->is_sampled, __ATOMIC_RELAXED);

	return sampled ? (uint8_t)MIN(sampled - 1, s->pads->memory.written.shift_max) : 0;
}

void pads_set_sample_shift(struct address_space *s, uint32_t shift)
{
	if (s->pads && s->heap.sampling)
		pad_memory_set_sample_shift(&s->pads->memory, shift);
}

static void add_lost(const struct pad_memory *m, struct lost_events *sum)
{
	for (uint32_t i = 0; i < m->slots.used; i++) {
		const struct pad_lost *lost = &pad_memory_ring(m, i)->lost;

		sum->allocations += __atomic_load_n(&lost->allocations, __ATOMIC_RELAXED);
		sum->bytes += __atomic_load_n(&lost->bytes, __ATOMIC_RELAXED);
		sum->releases += __atomic_load_n(&lost->releases, __ATOMIC_RELAXED);
		sum->has_unsure |= __atomic_load_n(&lost->has_unsure, __ATOMIC_RELAXED) != 0;
	}
}

void pads_add_totals(const struct address_space *s, struct call_totals *totals)
{
	_Static_assert(HEAP_FUNCTION_COUNT <= PAD_FUNCTIONS, "a slot counts all functions");
	totals->is_doubtful |= s->pads && s->pads->ring.broken;
	heap_sampling_add_totals(s->heap.sampling, totals);
	if (s->pads)
		add_lost(&s->pads->memory, &totals->lost);
	for (uint32_t i = 0; s->heap.sampling && s->pads && i < s->pads->memory.slots.used; i++) {
		const struct pad_slot *slot = pad_memory_slot(&s->pads->memory, i);
		for (unsigned f = 0; f < HEAP_FUNCTION_COUNT; f++) {
			const struct pad_count *count = &slot->count[f];
			totals->function[f].calls +=
				__atomic_load_n(&count->calls, __ATOMIC_RELAXED);
			totals->function[f].bytes +=
				__atomic_load_n(&count->bytes, __ATOMIC_RELAXED);
		}
	}
}
