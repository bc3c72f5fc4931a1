/* Repairs memory of pads that the program has unmapped. */
#ifndef PTMEM_TRACEE_PADS_PAD_RESTORE_H
#define PTMEM_TRACEE_PADS_PAD_RESTORE_H

#include "base/types.h"

struct target;
struct thread;

/*
 * @th stopped for SIGSEGV. True if it was in a pad whose memory the program had unmapped: the
 * memory is mapped again, and @th, which may be gone, continues.
 */
bool pads_restore_memory(struct target *t, struct thread *th);

#endif
