/*
 * Traps at the entries of watched functions, and behind the calls of their stubs.
 */
#ifndef PTMEM_TRACEE_CALLS_ENTRY_H
#define PTMEM_TRACEE_CALLS_ENTRY_H

#include "tracee/state/space.h"

/* What serves the entry of @probe's function; NULL: another module does (the loader, markers). */
trap_fn *entry_handler(const struct probe *probe);
/* Serves the trap in a stub behind its call. */
trap_fn entry_serve_return;

/* Whether @th, whose stack pointer is @sp, is inside the operator delete that it entered last. */
bool entry_is_in_delete(const struct thread *th, taddr_t sp);

#endif
