/* The state of a thread that concerns pads. */
#ifndef PTMEM_TRACEE_PADS_PAD_THREAD_H
#define PTMEM_TRACEE_PADS_PAD_THREAD_H

#include "base/types.h"

struct thread;

struct pad_thread {
	uint64_t pointer;       /* its thread pointer, the key of its slot; 0 = has no slot */
	uint32_t slot;
	uint64_t waited_slot, waited_end; /* for which head it last found a ring full */
	/* a pad did not find its slot, although it has one: how often, at this head of its ring */
	uint32_t misses;
	uint64_t missed_head;
	uint32_t bounds_traps;  /* consecutive calls on another stack than its slot's */
};

/* Returns the state of @th; thread_remove frees it. */
struct pad_thread *pad_thread(struct thread *th);
/* The index of the slot of @th; -1 = it has none. */
int pad_thread_slot(const struct thread *th);
/* @th runs another program: it has no slot any more. */
void pad_thread_forget(struct thread *th);

#endif
