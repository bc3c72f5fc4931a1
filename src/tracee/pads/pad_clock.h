/*
 * The clock of pads that cannot read the CPU's counter: a word in the shared memory
 * (pad_control.clock) to which a thread writes the time every PAD_CLOCK_NS. The pads of a thread
 * put it between their records when it has changed.
 *
 * A word is as old as the thread's last turn. With real-time priority, which root has, the thread
 * gets a CPU at once; otherwise others can keep it waiting for milliseconds. So it notes the turns
 * that were late: what has the time of the word before such a turn happened by then.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_CLOCK_H
#define PTMEM_TRACEE_PADS_PAD_CLOCK_H

#include "arch/pad.h"
#include "base/types.h"

struct pad_clock;

/* The thread is started with the first control block. */
struct pad_clock *pad_clock_new(void);
/* Ends the thread. NULL is allowed. */
void pad_clock_delete(struct pad_clock *c);

/*
 * Writes the time to @control from now on, until pad_clock_remove. Returns whether that is
 * possible: without a thread the word stays 0.
 */
bool pad_clock_add(struct pad_clock *c, struct pad_control *control);
/* After this @control is not accessed any more. It need not have been added. */
void pad_clock_remove(struct pad_clock *c, const struct pad_control *control);

/*
 * When the word @now, which comes from the program and may be anything, was replaced by the next
 * one, at the latest; UINT64_MAX: it may be in force, or that was long ago and is forgotten.
 */
uint64_t pad_clock_end(const struct pad_clock *c, uint64_t now);

#endif
