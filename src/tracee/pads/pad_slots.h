/*
 * The slots of threads in the shared memory, and the directory by which pads find them.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_SLOTS_H
#define PTMEM_TRACEE_PADS_PAD_SLOTS_H

#include "tracee/pads/pad_cache.h"
#include "tracee/pads/pad_memory.h"

/* Whether pad_slots_add() for @thread_pointer would find a slot. */
bool pad_slots_have_room(const struct pad_memory *m, uint64_t thread_pointer);
/*
 * Gives the thread with @thread_pointer a slot; one that it has already (a thread pointer
 * is used again) is reset. The thread must be stopped, or not yet running. Returns the
 * slot's index, or -ENOSPC.
 */
int pad_slots_add(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high);

/* The index of the slot of @thread_pointer, or -ENOENT. */
int pad_slots_find(const struct pad_memory *m, uint64_t thread_pointer);

/* The thread is gone: its slot may be given to another. Its records must have been read. */
void pad_slots_remove(struct pad_memory *m, uint64_t thread_pointer);

/*
 * Forgets the call and the frames of slot @index, whose thread is stopped outside pads; the
 * reader must forget its own too (ring_reset_slot).
 */
void pad_slots_reset(struct pad_memory *m, uint32_t index);

/*
 * @m was just made with its parent's options, and located at the same address. It becomes what the
 * parent's memory is for the one thread of @slot: @control, @slot and its deep cache (NULL = none)
 * as they were, an empty ring that continues at @position, no rules. The caller took key, flags,
 * index and thread pointer in them from private memory, not from what is shared.
 */
void pad_slots_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, const struct pad_deep_copy *deep,
			uint64_t position);

#endif
