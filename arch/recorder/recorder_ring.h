/*
 * Writing to a thread's ring. The only line that threads share for writing is that of the numbers:
 * one locked addition for each record, while a process has several threads. (A thread can take no
 * stock of numbers: the order of a free, and of the allocation that gets the block in another
 * thread, would be lost.)
 *
 * Designs measured by scripts/bench_rings.c: CPU time of threads and reader, relative to one ring
 * for all threads, with a locked addition to its head, in the same round (with 1 thread: without
 * the lock); medians of 9 and of 11 rounds, the lowest and the highest for steady and bursty work.
 * AMD EPYC, virtual, 2 CPUs with other work on them.
 *
 *	                                           1 thread      4 threads     16 threads
 *	one ring, a cache line for each record     1.37 - 1.62   0.74 - 1.64   0.65 - 0.87
 *	a ring for each CPU, rdtscp                3.82 - 4.62   0.94 - 2.52   0.28 - 0.59
 *	a ring for each thread
 *	    rdtscp in each record                  2.12 - 3.59   0.48 - 2.01   0.18 - 0.39
 *	    rdtsc in each record                   1.29 - 1.86   0.33 - 1.14   0.11 - 0.22
 *	    records of a page numbered             1.21 - 1.67   0.43 - 1.02   0.16 - 0.28
 *	    all records numbered: this one         1.27 - 1.56   0.50 - 1.03   0.20 - 0.33
 *	    no order (that of one thread)          0.86 - 0.88   0.21 - 0.71   0.07 - 0.13
 *	    no order, frees of 8 bytes             0.80 - 0.89   0.19 - 0.68   0.07 - 0.14
 *
 * Rejected:
 *	- One ring: below.
 *	- rdtsc: it may be executed before the loads that precede it. Of a million records of 4
 *	  threads 40 to 1000 came in an order in which a block is given out twice.
 *	- rdtscp: 18 ns each in a virtual machine, and the kernel may not trust that counter.
 *	- Numbers for each page: the order of two blocks on different pages is lost, and with it
 *	  the peak of a program whose threads take turns.
 *	- A ring for each CPU: a locked addition and the clock.
 *	- A cache line for each record: 4 threads take up to twice the wall time, for each record
 *	  moves a line of its own.
 *	- Frees of 8 bytes: no gain that could be measured. Here the mark alone has 8 bytes.
 *	- One ring, and a room of each thread for its records of 16 bytes, which ptmem copies to
 *	  their places before it reads: 0.8 to 1.05 times the wall time of one ring.
 *
 * In ptmem itself: CPU time of program and ptmem together, and wall time, for a pair of
 * tests/targets/mb (20,000,000 of them, at a depth of 20), in ns; the least of seven runs that
 * alternated, on the same machine, without other work. The model's reader compares the rings' next
 * numbers; ptmem's does not (tracee/pads/ring_drain.c), which is why it gains more.
 *
 *	                  native       one ring       a ring for each thread
 *	                  CPU   wall   CPU   wall     CPU   wall
 *	1 thread          25    25     53    37       53    38
 *	4 threads         26    13     108   55       64    31
 *	16 threads        26    13     114   60       67    33
 *
 * Sizes of rings, wall time with 1, 4 and 16 threads: 64 KiB 69, 43, 50 ns; 128 KiB 60, 53, 41;
 * 256 KiB 44, 41, 44; 512 KiB 43, 57, 46; 1 MiB 42, 55, 68. So the first thread's has 1 MiB, and
 * others 256 KiB: pad_memory.h.
 */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_RING_H
#define PTMEM_ARCH_RECORDER_RECORDER_RING_H

#include "arch/recorder/recorder.h"

/* Where a record goes, and its number. */
struct ring_place {
	struct pad_ring *ring;
	uint64_t *word;
	uint64_t number;
};

INLINE struct pad_ring *ring_of(const struct pad_slot *slot)
{
	return (struct pad_ring *)slot->ring;
}

INLINE void set_head(struct pad_ring *ring, uint64_t head)
{
	__atomic_store_n(&ring->head, head, __ATOMIC_RELEASE);
}

/* Where a record of @size bytes ends that is written at @head, or behind a FILL there. */
INLINE uint64_t record_end(const struct pad_ring *ring, uint64_t head, uint64_t size)
{
	uint64_t rest = ring->mask + 1 - (head & ring->mask);

	return head + size + (unlikely(size > rest) ? rest : 0);
}

/* Makes room for a record of @size bytes. 0: there is none, or the reader is gone. */
INLINE int reserve(struct pad_control *c, const struct pad_slot *slot, uint64_t size,
		   struct ring_place *out)
{
	struct pad_ring *ring = ring_of(slot);
	uint64_t head = ring->head, end = record_end(ring, head, size);

	if (unlikely(end > READ(ring->soft_limit))) {
		int has_room = pad_make_room(c, slot, size);
		cpu_forget_return();
		if (!has_room)
			return 0;
		head = ring->head;
		end = record_end(ring, head, size);
	}
	if (unlikely(end != head + size)) {
		*(uint64_t *)(ring->at + (head & ring->mask)) = PAD_RECORD_FILL;
		head = end - size;
		set_head(ring, head);
	}
	out->ring = ring;
	out->word = (uint64_t *)(ring->at + (head & ring->mask));
	if (!out->word)
		__builtin_unreachable();
	cpu_prefetch(out->word);
	out->number = 1;
	cpu_add(&c->next_number, &out->number, c->shared);
	return 1;
}

/* The record of @size bytes is complete, except for its mark. */
INLINE void commit(const struct ring_place *place, uint64_t size, const struct pad_head *head,
		   enum pad_record_type type)
{
	*place->word = pad_mark(place->number, head->probe.function, type);
	set_head(place->ring, place->ring->head + size);
}

INLINE uint64_t tail_size(const struct pad_control *c)
{
	return c->flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* The size of a record with @bytes of contents. */
INLINE uint64_t record_size(const struct pad_control *c, uint64_t bytes)
{
	return ((bytes + 15) & ~15ull) + tail_size(c);
}

INLINE int fits_ring(const struct pad_control *c, const struct pad_slot *slot, uint64_t bytes)
{
	return record_size(c, bytes) <= pad_record_max(c, ring_of(slot)->mask);
}

/* Whether the block of such a release may not be in the profile. */
INLINE int is_unsure(enum pad_record_type type)
{
	return type == PAD_RECORD_INNER_FREE || type == PAD_RECORD_REALLOC_MAYBE;
}

/* Writes a record of one @value, for the call with return slot @at. 0: it is lost. */
INLINE int record_word(const struct pad_slot *slot, const struct pad_head *head, uint64_t value,
		       uint64_t at, enum pad_record_type type)
{
	struct pad_control *c = (struct pad_control *)head->control;
	uint64_t size = record_size(c, 16);
	struct ring_place place;

	if (unlikely(!reserve(c, slot, size, &place))) {
		if (type == PAD_RECORD_SAME)
			pad_lose_block(c, slot, value % PAD_SAME_BYTES);
		else if (is_unsure(type))
			WRITE(ring_of(slot)->lost.has_unsure, 1);
		else
			pad_lose_release(c, slot, value);
		return 0;
	}
	place.word[1] = value;
	if (c->flags & PAD_STACK_POINTER)
		place.word[2] = at + ARCH_RETURN_SIZE;
	commit(&place, size, head, type);
	return 1;
}

/* Frees the slot. */
INLINE void finish(struct pad_slot *slot)
{
	barrier();
	WRITE(slot->return_at, 0);
}

#endif
