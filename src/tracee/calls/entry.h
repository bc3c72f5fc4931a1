/*
 * Traps at the entries of watched functions, and after the calls of their stubs.
 */
#ifndef PTMEM_TRACEE_CALLS_ENTRY_H
#define PTMEM_TRACEE_CALLS_ENTRY_H

#include "tracee/state/space.h"

/* What serves the entry of @probe's function; NULL: another module does (the loader, markers). */
trap_fn *entry_handler(const struct probe *probe);
/* Serves the trap in a stub after its call. */
trap_fn entry_serve_return;

/*
 * Pads follow @th from now on. Whether it is inside the operator delete that it entered last, whose
 * own free is no event; *block_out is the block then.
 */
bool entry_take_delete(const struct target *t, struct thread *th, taddr_t *block_out);

#endif
