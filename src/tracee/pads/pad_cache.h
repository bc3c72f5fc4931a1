/*
 * Where pads keep the frames of a thread's last stack: normally in its slot, or in a deep cache for
 * a thread that recurses deeper. There are a few of those, assigned when a pad requests one
 * (PAD_REASON_DEEP).
 */
#ifndef PTMEM_TRACEE_PADS_PAD_CACHE_H
#define PTMEM_TRACEE_PADS_PAD_CACHE_H

#include "tracee/pads/pad_memory.h"

/* A copy of the deep cache of one slot, for a forked child. */
struct pad_deep_copy {
	uint32_t index;
	struct pad_deep_cache cache;
};

/* Slot @index gets a new thread: its frames are stored in the slot. */
void pad_cache_use_own(struct pad_memory *m, uint32_t index);

/*
 * Slot @index, whose thread is stopped at a PAD_REASON_DEEP, gets a deep cache if one is free, and
 * never requests one again. Its frames are reset: the caller must reset the reader's, too
 * (ring_reset_slot).
 */
void pad_cache_deepen(struct pad_memory *m, uint32_t index);

/* The thread of slot @index has ended. */
void pad_cache_return(struct pad_memory *m, uint32_t index);

/* A copy of the deep cache of slot @index, which the caller frees; NULL = it has none. */
struct pad_deep_copy *pad_cache_copy(const struct pad_memory *m, uint32_t index);
/* Slot @index of @m, a copy of the parent's memory, gets a copy of the deep cache. */
void pad_cache_inherit(struct pad_memory *m, uint32_t index, const struct pad_deep_copy *copy);

#endif
