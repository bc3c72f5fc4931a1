/* The end of pads in a running process. */
#ifndef PTMEM_TRACEE_PADS_PAD_RETREAT_H
#define PTMEM_TRACEE_PADS_PAD_RETREAT_H

struct address_space;
struct target;

/*
 * The program of @s has mapped its own memory over code or memory of pads: jumps become breakpoints
 * for good, and calls in progress return to stubs. All threads are stopped.
 */
void pads_retreat(struct target *t, struct address_space *s);
/* The memory that pads shared with ptmem is the program's now, which must not be unmapped. */
void pads_forget_memory(struct address_space *s);

#endif
