/*
 * Delivers the rings' contents: records become events, plain ones in batches.
 *
 * Order of events: a record is numbered before a block can become known or reusable, so the order
 * of numbers is correct for records. An event that ptmem makes itself, at a stop, must come after
 * all records complete by then: call pads_catch_up() first.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_DELIVERY_H
#define PTMEM_TRACEE_PADS_PAD_DELIVERY_H

#include "base/types.h"

struct address_space;
struct target;
struct thread;

/*
 * Reads what is complete, about PADS_DRAIN_BATCH records at most: a caller that reads more in a row
 * would not notice a waiting thread. Returns the number of records; fewer: there was no more.
 */
#define PADS_DRAIN_BATCH 2048u
size_t pads_drain_some(struct target *t, struct address_space *s);
/* The number of records read from the pads of @s that are not in the target's statistics yet. */
uint64_t pads_records(const struct address_space *s);
/* Reads everything that is complete by now, not what running threads add meanwhile. */
size_t pads_drain(struct target *t, struct address_space *s);
/* The same, if there are pads. */
void pads_catch_up(struct target *t, struct address_space *s);
/* The same; returns whether a record of @th was among them. */
bool pads_catch_up_on(struct target *t, const struct thread *th);

/* pad_hooks.take_deleted */
bool pads_take_deleted(struct target *t, struct thread *th, taddr_t block);

/*
 * Whether the program overwrote the memory that it shares with pads, which is reported once. After
 * that nothing more is read from it: the profile of @s must end (target_leave.c).
 */
bool pads_are_corrupt(struct address_space *s);
/*
 * How inexact times are, in ns, if those of more than one in a hundred events are, since calls
 * cannot read the CPU's counter; else 0.
 */
uint64_t pads_time_error(const struct address_space *s);
/* Reads the rings for the last time. */
void pads_finish(struct target *t, struct address_space *s);

#endif
