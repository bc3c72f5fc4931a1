/*
 * Threads that wait for room in the ring. The ring is full, and its tail cannot advance because of
 * an uncommitted record: its thread was preempted there, or interrupted by a signal handler, which
 * may even wait for one of the threads that wait for room. So ptmem does not wait for it either:
 * the ring continues around that record (ring_jump), while all threads run. (Stopping a thousand
 * threads took 30 to 100 ms for each lap of the ring, and since all were runnable afterwards, that
 * record's thread did not run for long.)
 */
#include "tracee/pads/pad_stall.h"

#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_thread.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/pads/ring_jump.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

#define JUMP_NS 1000000u /* minimum between two jumps if the first one did not help a thread */

void pads_publish(struct address_space *s)
{
	ring_publish(&s->pads->ring);
}

void pads_wake_waiters(struct target *t, struct address_space *s)
{
	struct pads *p = s->pads;
	if (!p)
		return;
	/* threads that retry must not all find the ring full again */
	uint64_t room = ring_free_bytes(&p->ring), given = 0;
	struct thread *th;
	for_each_thread_in(t, s, th) {
		const struct pad_thread *own = pad_thread(th);
		if (!th->waits_for_room ||
		    !ring_may_continue(&p->ring, own->waited_start, own->waited_end))
			continue;
		if (ring_was_skipped(&p->ring, own->waited_start)) {
			if (given > 0 && given >= room)
				continue;
			given += own->waited_end - own->waited_start;
		}
		thread_wait_no_more(t, th);
		thread_resume(t, th, 0);
	}
}

/*
 * Everything reserved below the limit of the room is read or known to be uncommitted. Gives waiting
 * threads room after the uncommitted records that hold the tail.
 */
static void jump(struct target *t, struct address_space *s)
{
	struct ring *r = &s->pads->ring;
	pads_catch_up(t, s);
	ring_publish(r);
	pads_wake_waiters(t, s);
	if (t->loop.waiters == 0 || ring_has_room(r))
		return;
	s->pads->jump_records = r->stats.records;
	s->pads->jump_ns = t->now_ns;
	if (ring_jump(r))
		pads_wake_waiters(t, s);
}

void pads_unblock(struct target *t, struct address_space *s)
{
	struct pads *p = s->pads;
	uint64_t mark = p->ring.position ^ p->ring.published << 32 ^ p->ring.deferred_count;
	/* the thread may be writing its record just now: retried after all pending stops */
	if (p->stall_mark != mark && p->ring.room == p->memory.layout.ring_size) {
		p->stall_mark = mark;
		return;
	}
	p->stall_mark = mark;
	if (p->jump_records != p->ring.stats.records || t->now_ns - p->jump_ns >= JUMP_NS)
		jump(t, s);
}
