/* Implements struct unwinder, which tracee code uses to inspect stacks, with a struct unwind. */
#ifndef PTMEM_UNWIND_UNWINDER_H
#define PTMEM_UNWIND_UNWINDER_H

#include "tracee/state/unwinder.h"
#include "unwind/unwind.h"

/* Makes @out use @u, which must outlive it. */
void unwinder_init(struct unwinder *out, struct unwind *u);

#endif
