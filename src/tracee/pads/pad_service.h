/* Handles the traps of pads and of the recorder (see arch/pad.h). */
#ifndef PTMEM_TRACEE_PADS_PAD_SERVICE_H
#define PTMEM_TRACEE_PADS_PAD_SERVICE_H

#include "tracee/state/space.h"

struct target;
struct thread;

trap_fn pads_serve_entry, pads_serve_leave, pads_serve_full;

/*
 * The enum pad_kind of the pad call that @th, at the breakpoint of a watched function, is in; 0 =
 * none.
 */
uint32_t pads_outer_kind(struct target *t, struct thread *th, const struct arch_regs *regs);

#endif
