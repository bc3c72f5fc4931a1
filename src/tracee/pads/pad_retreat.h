/* The end of pads in a running process. */
#ifndef PTMEM_TRACEE_PADS_PAD_RETREAT_H
#define PTMEM_TRACEE_PADS_PAD_RETREAT_H

struct address_space;
struct maps;
struct target;

/*
 * The program of @s has mapped its own memory over that of pads, according to @maps: jumps become
 * breakpoints for good, and calls in progress return to stubs. All threads are stopped.
 */
void pads_retreat(struct target *t, struct address_space *s, const struct maps *maps);

#endif
