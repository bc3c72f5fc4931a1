/* The slots of threads in the shared memory, and the directory in which pads find them. */
#ifndef PTMEM_TRACEE_PADS_PAD_SLOTS_H
#define PTMEM_TRACEE_PADS_PAD_SLOTS_H

#include "tracee/pads/pad_cache.h"
#include "tracee/pads/pad_memory.h"

/* Whether pad_slots_add() for @thread_pointer would find a slot. */
bool pad_slots_have_room(const struct pad_memory *m, uint64_t thread_pointer);
/*
 * Assigns a slot to the thread with @thread_pointer; an existing one (thread pointers are reused)
 * is reset. The thread must be stopped, or not running yet. Returns the slot's index, or -ENOSPC.
 */
int pad_slots_add(struct pad_memory *m, uint64_t thread_pointer, taddr_t stack_low,
			  taddr_t stack_high);

/* The index of the slot of @thread_pointer, or -ENOENT. */
int pad_slots_find(const struct pad_memory *m, uint64_t thread_pointer);

/* The thread has ended: its slot may be reused. Its records must have been read. */
void pad_slots_remove(struct pad_memory *m, uint64_t thread_pointer);

/*
 * Clears the call and the frames of slot @index, whose thread is stopped outside pads. The caller
 * must reset the reader's copy, too (ring_reset_slot).
 */
void pad_slots_reset(struct pad_memory *m, uint32_t index);

/*
 * @m was just made with its parent's options, at the same address. Turns it into a copy of the
 * parent's memory for the one thread of @slot: @control, @slot and its deep cache (NULL = none) as
 * they were, no rules. The caller took flags, index and thread pointer from private memory, not
 * from the shared one.
 */
void pad_slots_inherit(struct pad_memory *m, const struct pad_control *control,
			const struct pad_slot *slot, const struct pad_deep_copy *deep);

#endif
