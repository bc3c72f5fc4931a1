/* Lets pads detect that ptmem died. */
#ifndef PTMEM_TRACEE_PADS_PAD_OWNER_H
#define PTMEM_TRACEE_PADS_PAD_OWNER_H

#include "tracee/pads/pad_memory.h"

/*
 * The control blocks owned by the calling thread. When it dies, for whatever reason, the kernel
 * sets PAD_OWNER_DIED in each before it releases traced threads: they are robust futexes. Replaces
 * the thread's list of robust mutexes; must not be moved.
 */
struct pad_owner {
	/* struct robust_list_head */
	struct { uint64_t list; int64_t futex_offset; uint64_t pending; } head;
	void *before;  /* the thread's own list */
};
int pad_owner_init(struct pad_owner *owner);
/* Restores the thread's own list; ours must be empty. */
void pad_owner_deinit(struct pad_owner *owner);
void pad_owner_add(struct pad_owner *owner, struct pad_memory *m);
void pad_owner_remove(struct pad_owner *owner, struct pad_memory *m); /* before its deinit */

#endif
