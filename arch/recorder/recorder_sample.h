/* Decides which blocks are sampled (arch/pad.h, Sampling). */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_SAMPLE_H
#define PTMEM_ARCH_RECORDER_RECORDER_SAMPLE_H

#include "arch/recorder/recorder_ring.h"

INLINE int is_sampling(const struct pad_control *c)
{
	return c->flags & PAD_SAMPLING;
}

INLINE struct pad_filter *filter_of(const struct pad_control *c)
{
	return (struct pad_filter *)((char *)c + PAD_FILTER_OFFSET);
}

/* Whether a sample may have the hash of @block. */
INLINE int is_filtered(const struct pad_control *c, uint64_t block)
{
	return block && pad_filter_may_have(filter_of(c), block);
}

/* @block is released: the type of its record; 0 = it is not a sample. */
INLINE enum pad_record_type released_as(const struct pad_control *c, uint64_t block)
{
	enum pad_filter_answer answer = pad_filter_take(filter_of(c), block);

	return answer == PAD_FILTER_TAKEN ? PAD_RECORD_FREE :
	       answer == PAD_FILTER_MAYBE ? PAD_RECORD_INNER_FREE :
					    (enum pad_record_type)0;
}

INLINE void count_bytes(struct pad_slot *slot, const struct pad_head *head, uint64_t bytes)
{
	struct pad_count *count = &slot->count[head->probe.function % PAD_FUNCTIONS];

	if (bytes <= PTRDIFF_MAX) /* a size that no object can have counts 0 bytes */
		WRITE(count->bytes, count->bytes + bytes);
}

INLINE void count_function(struct pad_slot *slot, uint64_t function)
{
	struct pad_count *count = &slot->count[function % PAD_FUNCTIONS];

	WRITE(count->calls, count->calls + 1);
}

/* Counts an outermost call, before it is decided whether it is sampled. */
INLINE void count_call(struct pad_slot *slot, const struct pad_head *head, uint64_t bytes)
{
	count_function(slot, head->probe.function);
	count_bytes(slot, head, bytes);
}

/*
 * Whether the next @size bytes that the thread allocates contain a mark: 0, or 1 + the shift with
 * which its distance was drawn. Advances over them. Calls in signal handlers do not come here while
 * return_at is set.
 */
INLINE uint32_t takes_sample(const struct pad_control *c, struct pad_slot *slot, uint64_t size)
{
	const uint64_t *distances = (const uint64_t *)((const char *)c + PAD_DISTANCES_OFFSET);
	uint64_t left = READ(slot->left), shift = READ(c->sample_shift);
	uint32_t was = slot->left_shift;

	if (left >= size) {
		WRITE(slot->left, left - size);
		return 0;
	}
	slot->random = pad_next_random(slot->random);
	slot->left_shift = (uint32_t)shift;
	WRITE(slot->left, pad_distance(READ(distances[pad_distance_index(slot->random)]),
				       (uint32_t)shift));
	return 1 + was;
}

/* Whether the ring has room for a sample besides what is kept for releases. */
INLINE int has_sample_room(const struct pad_control *c, const struct pad_slot *slot)
{
	const struct pad_ring *ring = ring_of(slot);

	return !(READ(c->flags) & PAD_LOSES) ||
	       ring->head + (ring->mask + 1) / 2 <= READ(ring->limit);
}

/* Writes the record of a sample's release, unless it is lost: then the sample stays one. */
INLINE int record_sample_release(struct pad_slot *slot, const struct pad_head *head, uint64_t block,
				 uint64_t at, enum pad_record_type type)
{
	const struct pad_control *c = (const struct pad_control *)head->control;

	if (is_unsure(type) && !has_sample_room(c, slot)) {
		WRITE(ring_of(slot)->lost.has_unsure, 1);
		return 0;
	}
	if (likely(record_word(slot, head, block, at, type)))
		return 1;
	if (!is_unsure(type))
		pad_filter_put_back(filter_of(c), block);
	return 0;
}

#define WEIGHT_BITS 10
#define WEIGHT_LARGE 16 /* intervals: the weight of a block of this size or more is its size */

/*
 * The weight in bytes of a sample of @size bytes: with x = size / interval that is size +
 * interval * x / (e^x - 1). The first terms of e^x are enough for an error of 2 %.
 */
INLINE uint64_t sample_weight(const struct pad_control *c, const struct pad_slot *slot,
			      uint64_t size)
{
	uint32_t shift = slot->is_sampled ? slot->is_sampled - 1 : 0;
	uint64_t interval = c->sample_interval << shift % (PAD_SHIFT_MAX + 1), x, sum;

	if (!interval || size / interval >= WEIGHT_LARGE)
		return size;
	x = (size << WEIGHT_BITS) / interval;
	sum = (1u << WEIGHT_BITS) + x / 2 + (x * x / 6 >> WEIGHT_BITS) +
	      (x * x * x / 24 >> 2 * WEIGHT_BITS);
	return size + (interval << WEIGHT_BITS) / sum;
}

#endif
