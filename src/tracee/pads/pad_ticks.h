/*
 * Pads read the CPU's counter for their stamps (arch/pad.h, Times), if they can: the kernel may not
 * trust it, and a program may have disabled it for itself (PR_SET_TSC).
 */
#ifndef PTMEM_TRACEE_PADS_PAD_TICKS_H
#define PTMEM_TRACEE_PADS_PAD_TICKS_H

#include <stdbool.h>

struct address_space;
struct target;
struct thread;

/* Sets how often the pads of @s write stamps: sampling ones before each record. */
void pads_set_gap(const struct target *t, struct address_space *s);

/*
 * @th stopped for SIGSEGV. True if a pad could not read the counter: from now on the pads of that
 * address space write no stamps, and the thread is resumed without the signal.
 */
bool pads_skip_ticks(struct target *t, struct thread *th);

/* Whether the program has pads that write no stamps: then their rings must be read often. */
bool pads_lack_stamps(const struct target *t);

#endif
