/*
 * Threads that wait for room in the ring.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_STALL_H
#define PTMEM_TRACEE_PADS_PAD_STALL_H

struct address_space;
struct target;

/* Publishes the ring's read position. */
void pads_publish(struct address_space *s);
/* Resumes threads that wait for room, if there is room now. */
void pads_wake_waiters(struct target *t, struct address_space *s);
/*
 * There are waiting threads. If nothing has moved for a while, the ring continues around its
 * uncommitted records. @s may be gone afterwards.
 */
void pads_unblock(struct target *t, struct address_space *s);

#endif
