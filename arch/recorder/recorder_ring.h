/*
 * Writing to the ring: one instruction reserves room, a record's mark commits it. All threads of a
 * program share one ring. The cost is two contended additions for a pair of malloc and free, each
 * of which waits for stores to lines that another CPU has just written. Alternatives measured by
 * scripts/bench_rings.c: CPU time of threads and reader, relative to this design in the same round
 * (with 1 thread: without the lock); medians of 9 and of 11 rounds, the lowest and the highest for
 * steady and bursty work. AMD EPYC, virtual, 2 CPUs with other work on them: the more of it, the
 * less the threads contend, and the better this one looks.
 *
 *	                                           1 thread      4 threads     16 threads
 *	one ring, a cache line for each record     1.37 - 1.62   0.74 - 1.64   0.65 - 0.87
 *	a ring for each CPU, rdtscp                3.82 - 4.62   0.94 - 2.52   0.28 - 0.59
 *	a ring for each thread
 *	    rdtscp in each record                  2.12 - 3.59   0.48 - 2.01   0.18 - 0.39
 *	    rdtsc in each record                   1.29 - 1.86   0.33 - 1.14   0.11 - 0.22
 *	    records of a page numbered             1.21 - 1.67   0.43 - 1.02   0.16 - 0.28
 *	    all records numbered                   1.27 - 1.56   0.50 - 1.03   0.20 - 0.33
 *	    no order (that of one thread)          0.86 - 0.88   0.21 - 0.71   0.07 - 0.13
 *	    no order, frees of 8 bytes             0.80 - 0.89   0.19 - 0.68   0.07 - 0.14
 *
 * Rejected:
 *	- rdtsc: it may be executed before the loads that precede it. Of a million records of 4
 *	  threads 40 to 1000 came in an order in which a block is given out twice.
 *	- rdtscp: 18 ns each. Where threads contend less it costs twice as much as this ring.
 *	- Numbers for each page: the order of two blocks on different pages is lost, and with it
 *	  the peak of a program whose threads take turns.
 *	- A ring for each CPU: a locked addition and the clock.
 *	- A cache line for each record: 4 threads take up to twice the wall time, for each record
 *	  moves a line of its own.
 *	- Frees of 8 bytes: no gain that could be measured. Here the mark alone has 8 bytes.
 *	- A larger ring (--ring): 16 MiB save 4 threads a fifth of the time, 1 or 16 nothing.
 *
 *	- Rooms: the records of 16 bytes go into a room of their thread, with the position that the
 *	  locked addition gave them. ptmem copies them there before it reads, so all but that
 *	  copy stays as it is. What threads save, ptmem pays, since it now waits for their lines.
 *
 * Rooms, in ptmem itself: CPU time and wall time divided by those of this ring in the same round;
 * medians of 9 rounds of tests/targets/mb with 4,000,000 pairs, at depths 5 and 20, on the same
 * machine. The rows without a reader are a lower bound of the threads' cost: with the locked
 * addition, and without it, which loses the order.
 *
 *	                      threads' CPU  with ptmem's   wall time
 *	4 threads
 *	    rooms of 128 KiB  0.87 - 1.08   0.96 - 1.01    1.03
 *	    rooms of 1 MiB    0.82 - 0.83   0.96 - 0.98    0.94 - 1.05
 *	    not read          0.75 - 0.76                  0.30 - 0.40
 *	    and no order      0.52 - 0.63                  0.24 - 0.32
 *	16 threads
 *	    rooms of 128 KiB  0.91 - 0.94   0.98 - 1.03    0.93 - 1.01
 *	    rooms of 1 MiB    0.71 - 0.78   0.91           0.79 - 0.95
 *	    not read          0.65 - 0.74                  0.19 - 0.42
 *	    and no order      0.39 - 0.54                  0.16 - 0.32
 *
 * So threads that do nothing but allocate wait for ptmem above all. It reads a pair in 16 ns where
 * one thread writes, in 26 where 4 do and 36 where 16 do, and without it 2 CPUs make one in 8 to
 * 17 ns: a faster reader comes before any other ring.
 *
 * With many threads and CPUs a ring for each thread would be better, with records numbered by one
 * counter and read without a copy: doc/internals.md describes that design.
 */
#ifndef PTMEM_ARCH_RECORDER_RECORDER_RING_H
#define PTMEM_ARCH_RECORDER_RECORDER_RING_H

#include "arch/recorder/recorder.h"

enum wait_end { WAIT_GONE, WAIT_ROOM, WAIT_AGAIN };

INLINE int has_ring_room(const struct pad_control *c, uint64_t end)
{
	uint64_t room = READ(c->room); /* before the tail */
	return end - READ(c->tail) <= room;
}

INLINE uint64_t *ring_place(const struct pad_control *c, uint64_t position)
{
	char *p = (char *)c->ring + (position & c->ring_mask);

	cpu_prefetch(p);
	if (!p)
		__builtin_unreachable();
	return (uint64_t *)p;
}

/* Reserves @size bytes, at *@position_out; NULL: the reader is gone. */
INLINE uint64_t *reserve(struct pad_control *c, uint64_t size, uint64_t *position_out)
{
	uint64_t position;

	for (;;) {
		int end;
		position = size;
		cpu_add(&c->head, &position, c->shared);
		if (likely(has_ring_room(c, position + size)))
			break;
		end = pad_wait(c, position, position + size);
		cpu_forget_return();
		if (end == WAIT_GONE)
			return 0;
		if (end == WAIT_ROOM)
			break;
	}
	*position_out = position;
	return ring_place(c, position);
}

INLINE void commit(const struct pad_control *c, uint64_t *p, uint64_t position, uint32_t slot,
		   const struct pad_head *head, enum pad_record_type type)
{
	uint64_t mark =
		pad_mark(position, c->key, slot << 8 | (uint32_t)head->probe.function << 4 | type);
	__atomic_store_n(p, mark, __ATOMIC_RELEASE);
}

INLINE uint64_t tail_size(const struct pad_control *c)
{
	return c->flags & PAD_STACK_POINTER ? PAD_TAIL : 0;
}

/* @at: the call's return slot. */
INLINE void record_block(struct pad_control *c, const struct pad_slot *slot,
			 const struct pad_head *head, uint64_t block, uint64_t at,
			 enum pad_record_type type)
{
	uint64_t position, *p = reserve(c, 16 + tail_size(c), &position);
	if (unlikely(!p))
		return;
	p[1] = block;
	if (c->flags & PAD_STACK_POINTER)
		p[2] = at + CPU_RETURN_SIZE;
	commit(c, p, position, slot->index, head, type);
}

/* Frees the slot. */
INLINE void finish(struct pad_slot *slot)
{
	barrier();
	WRITE(slot->return_at, 0);
}

/*
 * Writes the record @value, for which a short way (arch/CPU/short_template.h) has reserved 16 bytes
 * at slot->reserved, once there is room.
 */
INLINE void record_reserved(struct pad_control *c, struct pad_slot *slot,
			    const struct pad_head *head, uint64_t value)
{
	uint64_t position = slot->reserved, *p = 0;
	int end = pad_wait(c, position, position + 16);

	cpu_forget_return();
	if (end == WAIT_ROOM)
		p = ring_place(c, position);
	else if (end == WAIT_AGAIN)
		p = reserve(c, 16, &position);
	if (p) {
		p[1] = value;
		commit(c, p, position, slot->index, head, head->mark & 15);
	}
	finish(slot);
}

#endif
