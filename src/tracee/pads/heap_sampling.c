/*
 * --heap-sample: the set of samples, a hash table with linear probing, and what pads need.
 */
#include "tracee/pads/heap_sampling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/byte_sampler.h"
#include "base/hash.h"
#include "tracee/pads/pad_memory.h"
#include "tracee/pads/pad_state.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"

/* A sample passed to realloc by @thread, which has not returned. */
struct moving {
	uint32_t thread;
	bool is_filtered; /* still in the filter */
	taddr_t addr;
};

struct heap_sampling {
	struct byte_sampler sampler; /* counts calls at breakpoints */
	uint8_t shift;               /* of its interval */
	struct call_totals totals;   /* likewise */
	HASH(taddr_t) set;           /* addresses of samples */
	VEC(struct moving) moving;
};

/* -- the set -- */

/* Returns whether it was new. */
static bool add(struct heap_sampling *h, taddr_t addr)
{
	if (hash_find(&h->set, hash_u64(addr), e, *e == addr))
		return false;
	*hash_add(&h->set, hash_u64(addr)) = addr;
	return true;
}

/* Returns whether it was in the set. */
static bool take(struct heap_sampling *h, taddr_t addr)
{
	const taddr_t *found = hash_find(&h->set, hash_u64(addr), e, *e == addr);

	if (found)
		hash_remove(&h->set, found);
	return found;
}

/* -- what pads need: the table of distances, the seeds of their generators, the filter -- */

static uint64_t *distances(const struct pad_memory *m)
{
	return (uint64_t *)(void *)(m->base + PAD_DISTANCES_OFFSET);
}

/*
 * Midpoints of equally probable parts of the distribution: their mean differs from the interval by
 * 5 millionths; for a table of random distances it would be off by 1 / 256.
 */
void heap_sampling_prepare(struct target *t)
{
	const double count = 1u << PAD_DISTANCE_BITS;
	const double unit = (double)(t->options.samples.heap << PAD_SHIFT_MAX);

	if (t->pads->distances)
		return;
	t->pads->distances = xmalloc(PAD_DISTANCES_SIZE);
	for (uint32_t i = 0; i < 1u << PAD_DISTANCE_BITS; i++)
		t->pads->distances[i] = (uint64_t)(-log((i + 0.5) / count) * unit);
}

void heap_sampling_seed_slot(const struct pad_memory *m, uint32_t index)
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

/* The block at @addr becomes a sample, or no longer is one. */
static void set_filter(struct address_space *s, taddr_t addr, bool is_sample)
{
	if (!s->pads)
		return;
	struct pad_filter *f = filter(&s->pads->memory);
	if (is_sample)
		pad_filter_add(f, addr);
	else if (pad_filter_take(f, addr) == PAD_FILTER_MAYBE)
		pad_filter_decrement(f, addr);
}

void heap_sampling_start_pads(struct target *t, struct address_space *s)
{
	struct pad_memory *m = &s->pads->memory;
	const struct heap_sampling *h = s->heap.sampling;

	if (!h)
		return;
	heap_sampling_prepare(t);
	pad_memory_set_sample_interval(m, t->options.samples.heap);
	pad_memory_set_sample_shift(m, t->options.samples.shift);
	m->sample_seed = hash_u64(t->options.samples.seed ^ (uint64_t)s->id << 32);
	memcpy(distances(m), t->pads->distances, PAD_DISTANCES_SIZE);
	for (uint32_t i = 0; i < m->slots.used; i++)
		heap_sampling_seed_slot(m, i);
	for (size_t i = 0; hash_next(&h->set.index, &i); i++)
		pad_filter_add(filter(m), h->set.slot[i]);
}

uint8_t heap_sampling_slot_shift(const struct address_space *s, const struct pad_slot *slot)
{
	uint32_t sampled = __atomic_load_n(&slot->is_sampled, __ATOMIC_RELAXED);

	return sampled ? (uint8_t)MIN(sampled - 1, s->pads->memory.written.shift_max) : 0;
}

/* -- lifetime -- */

static struct heap_sampling *new_sampling(const struct target *t, const struct address_space *s)
{
	struct heap_sampling *h = xcalloc(1, sizeof(*h));

	h->shift = (uint8_t)t->options.samples.shift;
	byte_sampler_init(&h->sampler, t->options.samples.heap << h->shift,
			  hash_u64(t->options.samples.seed + s->id));
	return h;
}

void heap_sampling_start(const struct target *t, struct address_space *s)
{
	if (t->options.samples.heap && !s->heap.sampling)
		s->heap.sampling = new_sampling(t, s);
}

void heap_sampling_fork(const struct target *t, const struct address_space *parent,
			struct address_space *child)
{
	const struct heap_sampling *from = parent->heap.sampling;
	struct heap_sampling *h;

	if (!from)
		return;
	child->heap.sampling = h = new_sampling(t, child);
	hash_copy(&h->set, &from->set);
	vec_append(&h->moving, &from->moving);
	heap_sampling_add_totals(parent, &h->totals);
}

void heap_sampling_free(struct heap_sampling *h)
{
	if (!h)
		return;
	vec_deinit(&h->moving);
	hash_deinit(&h->set);
	free(h);
}

/* -- interval -- */

/* The distance to a mark has no memory: the next one may be drawn at any time. */
static void set_shift(struct target *t, struct address_space *s)
{
	struct heap_sampling *h = s->heap.sampling;

	h->shift = (uint8_t)t->options.samples.shift;
	h->sampler.interval = t->options.samples.heap << h->shift;
	h->sampler.left = byte_sampler_draw(&h->sampler);
	if (s->pads)
		pad_memory_set_sample_shift(&s->pads->memory, h->shift);
}

void heap_sampling_set_shift(struct target *t, uint32_t shift)
{
	t->options.samples.shift = shift;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct address_space *s = t->processes.data[i]->space;

		if (s->heap.sampling)
			set_shift(t, s);
	}
}

/* -- totals -- */

/* The counts from breakpoints. */
static void add_own(const struct heap_sampling *h, struct call_totals *totals)
{
	for (unsigned i = 0; h && i < HEAP_FUNCTION_COUNT; i++) {
		totals->function[i].calls += h->totals.function[i].calls;
		totals->function[i].bytes += h->totals.function[i].bytes;
	}
	if (!h)
		return;
	totals->lost.allocations += h->totals.lost.allocations;
	totals->lost.bytes += h->totals.lost.bytes;
	totals->lost.releases += h->totals.lost.releases;
	totals->lost.has_unsure |= h->totals.lost.has_unsure;
	totals->is_doubtful |= h->totals.is_doubtful;
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

void heap_sampling_add_totals(const struct address_space *s, struct call_totals *totals)
{
	_Static_assert(HEAP_FUNCTION_COUNT <= PAD_FUNCTIONS, "a slot counts all functions");
	totals->is_doubtful |= s->pads && s->pads->ring.broken;
	add_own(s->heap.sampling, totals);
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

static void count_call(struct heap_sampling *h, const struct heap_event *ev)
{
	if (!ev->is_inner && ev->kind != HEAP_REALLOC_BEGIN)
		call_totals_count(&h->totals, ev->function, ev->kind == HEAP_FREE, ev->size);
}

/* -- events -- */

/* A new sample; if a pad chose it, that has added it to the filter. */
static void begin_sample(struct target *t, struct address_space *s, taddr_t addr, bool is_of_pad)
{
	bool is_new = add(s->heap.sampling, addr);

	if (!is_of_pad && is_new)
		set_filter(s, addr, true);
	else if (is_of_pad && !is_new) /* its last release was not seen */
		set_filter(s, addr, false);
}

/* Whether @ev, which no pad has seen, is a sample. */
static bool take_mark(struct heap_sampling *h, struct heap_event *ev)
{
	ev->sample_shift = h->shift;
	return byte_sampler_take(&h->sampler, ev->size);
}

static bool see_alloc(struct target *t, struct address_space *s, struct heap_event *ev,
		      bool is_of_pad)
{
	if (!ev->addr) /* a call that fails is always an event */
		return true;
	if (!is_of_pad && !ev->weighted && !take_mark(s->heap.sampling, ev))
		return false;
	begin_sample(t, s, ev->addr, is_of_pad);
	return true;
}

/* The pad has removed a sample from the filter, or could not tell whether it is one (is_inner). */
static bool see_free(struct target *t, struct address_space *s, struct heap_event *ev,
		     bool is_of_pad)
{
	if (!take(s->heap.sampling, ev->addr))
		return false;
	if (!is_of_pad || ev->is_inner)
		set_filter(s, ev->addr, false);
	ev->is_inner = false; /* known to be one now */
	return true;
}

static bool see_begin(struct heap_sampling *h, const struct heap_event *ev, bool is_of_pad)
{
	if (!take(h, ev->old_addr))
		return false;
	*vec_add(&h->moving) = (struct moving){
		.thread = ev->thread,
		.is_filtered = !is_of_pad || ev->is_inner,
		.addr = ev->old_addr,
	};
	return true;
}

static bool take_moving(struct heap_sampling *h, const struct heap_event *ev,
			bool *is_filtered_out)
{
	for (size_t i = h->moving.count; i-- > 0;) {
		const struct moving *m = &h->moving.data[i];
		if (m->thread == ev->thread && m->addr == ev->old_addr) {
			*is_filtered_out = m->is_filtered;
			vec_take_swap(&h->moving, i);
			return true;
		}
	}
	return false;
}

/*
 * The end of a realloc. Of a sample: it fails, ends the sample, or creates another one. Of any
 * other block: it counts as an allocation.
 */
static bool see_end(struct target *t, struct address_space *s, struct heap_event *ev,
		    bool is_of_pad)
{
	bool is_filtered = false, was_sample = take_moving(s->heap.sampling, ev, &is_filtered);
	bool is_failed = !ev->addr && ev->size > 0;
	bool is_sample = ev->addr &&
			 (is_of_pad || take_mark(s->heap.sampling, ev));

	if (was_sample && is_failed) {
		add(s->heap.sampling, ev->old_addr);
		return true;
	}
	if (is_filtered)
		set_filter(s, ev->old_addr, false);
	if (is_sample)
		begin_sample(t, s, ev->addr, is_of_pad);
	else if (!is_failed)
		ev->addr = ev->size = 0;
	if (was_sample)
		return true;
	ev->kind = HEAP_ALLOC;
	ev->old_addr = is_sample ? ev->old_addr : 0;
	return is_sample || is_failed;
}

bool heap_sampling_see(struct target *t, struct address_space *s, struct heap_event *ev)
{
	bool is_of_pad = ev->is_chosen;

	if (!s->heap.sampling || ev->kind > HEAP_REALLOC_END)
		return true;
	if (!is_of_pad)
		count_call(s->heap.sampling, ev);
	ev->is_chosen = true;
	switch (ev->kind) {
	case HEAP_ALLOC:
		return see_alloc(t, s, ev, is_of_pad);
	case HEAP_FREE:
		return see_free(t, s, ev, is_of_pad);
	case HEAP_REALLOC_BEGIN:
		return see_begin(s->heap.sampling, ev, is_of_pad);
	default:
		return see_end(t, s, ev, is_of_pad);
	}
}
