/*
 * Describes code that ptmem put into a space to an unwinder: stubs, pads, the recorder, moved
 * instructions. A thread inside a watched call returns into a stub or a pad first, so that address
 * is on its stack. The frame layout of both is fixed (arch.h, pad.h).
 */
#ifndef PTMEM_TRACEE_PADS_OWN_CODE_H
#define PTMEM_TRACEE_PADS_OWN_CODE_H

#include "unwind/unwind.h"

struct address_space;
struct target;

/* Describes @place if it is in code of ours. False if it is not, or cannot be described. */
bool own_code_find(struct target *t, const struct address_space *s, const struct own_place *place,
		   struct own_code *out);
/* Frees what own_code_find caches in @t. */
void own_code_free(struct target *t);

#endif
