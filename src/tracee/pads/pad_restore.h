/* Repairs memory that pads share with ptmem, and that the program has unmapped. */
#ifndef PTMEM_TRACEE_PADS_PAD_RESTORE_H
#define PTMEM_TRACEE_PADS_PAD_RESTORE_H

#include "base/types.h"
#include "tracee/inject/lost_code.h"

struct address_space;
struct maps;
struct target;
struct thread;

/* Whether @addr is in memory that pads of @s share with ptmem. */
bool pads_share_memory_at(const struct address_space *s, taddr_t addr);
/* What became of it, according to @maps; replaced if a part of it is. */
enum lost_state pads_memory_state(const struct address_space *s, const struct maps *maps);
/*
 * Maps again what is gone of it; -EEXIST, if it is replaced. All threads are stopped; @th makes the
 * calls. *any_out is set if there was anything.
 */
int pads_restore_memory(struct target *t, struct thread *th, const struct maps *maps,
			bool *any_out);

#endif
