/* Traps at the entries of watched functions, and after the calls in their stubs. */
#ifndef PTMEM_TRACEE_CALLS_ENTRY_H
#define PTMEM_TRACEE_CALLS_ENTRY_H

#include "tracee/state/space.h"

/* The handler for the entry of @probe's function; NULL: another module's (the loader, markers). */
trap_fn *entry_handler(const struct probe *probe);
/* Handles the trap in a stub after its call. */
trap_fn entry_serve_return;

/*
 * Pads are about to follow @th. Whether it is inside an operator delete whose own free is not an
 * event; *block_out is that block.
 */
bool entry_take_delete(const struct target *t, struct thread *th, taddr_t *block_out);

#endif
