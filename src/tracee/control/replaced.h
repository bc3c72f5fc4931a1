/* Areas of ptmem's code in whose place the program has mapped memory of its own. */
#ifndef PTMEM_TRACEE_CONTROL_REPLACED_H
#define PTMEM_TRACEE_CONTROL_REPLACED_H

#include <stdbool.h>

struct maps;
struct target;
struct thread;

/*
 * Makes what the program of @s has replaced, according to @maps, anew at other addresses, and moves
 * threads there; pads become breakpoints. All threads are stopped; @th makes the calls. Whether
 * anything was replaced.
 */
bool replaced_move(struct target *t, struct thread *th, const struct maps *maps);

#endif
