/*
 * How threads leave pads when ptmem leaves.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_LEAVE_H
#define PTMEM_TRACEE_PADS_PAD_LEAVE_H

struct address_space;
struct target;

/* Turns recording off; all threads are stopped. Text is restored by install_remove(). */
void pads_disarm(struct target *t, struct address_space *s);
/*
 * Runs threads in pads to the exits of those; text is restored. Some may have to be stepped still.
 */
void pads_run_out(struct target *t, struct address_space *s);
/* Threads inside originals must return to their callers, not into pads. */
void pads_release_threads(struct target *t, struct address_space *s);

#endif
