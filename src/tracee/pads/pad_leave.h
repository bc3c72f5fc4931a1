/* Moves threads out of pads when ptmem detaches. */
#ifndef PTMEM_TRACEE_PADS_PAD_LEAVE_H
#define PTMEM_TRACEE_PADS_PAD_LEAVE_H

struct address_space;
struct target;

/* Turns recording off; all threads are stopped. install_remove() restores the text. */
void pads_disarm(struct target *t, struct address_space *s);
/* Runs threads in pads to the exits; text is restored. Some may still have to be stepped. */
void pads_run_out(struct target *t, struct address_space *s);
/* Makes threads inside originals return to their callers instead of into pads. */
void pads_release_threads(struct target *t, struct address_space *s);

#endif
