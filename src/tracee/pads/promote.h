/*
 * Promotion of hot functions from breakpoints to pads.
 */
#ifndef PTMEM_TRACEE_PADS_PROMOTE_H
#define PTMEM_TRACEE_PADS_PROMOTE_H

struct address_space;
struct target;
struct thread;

/* What promotion needs to know, and what takes long to find, while the threads of @s run. */
void pads_prepare(struct target *t, struct address_space *s);

/*
 * Promotes every watched function of @s whose entry is still a breakpoint; all threads are stopped,
 * @th is one of them. Called again for functions found later. 0 or -errno.
 */
int pads_promote(struct target *t, struct address_space *s, struct thread *th);

#endif
