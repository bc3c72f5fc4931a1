/*
 * Functions of pads for the layers below. pads/pads.c registers them for each target; they do
 * nothing in an address space without pads.
 */
#ifndef PTMEM_TRACEE_STATE_PAD_HOOKS_H
#define PTMEM_TRACEE_STATE_PAD_HOOKS_H

#include "arch/arch.h"

struct address_space;
struct call_totals;
struct pad_slot;
struct target;
struct thread;

struct pad_hooks {
	/*
	 * Delivers all records committed so far: call it before an event that ptmem makes
	 * itself.
	 */
	void (*catch_up)(struct target *t, struct address_space *s);
	/* The slot of @th, or NULL. */
	struct pad_slot *(*slot)(const struct thread *th);
	/*
	 * @th is at a watched function's breakpoint: the enum pad_kind of the call entered by a pad
	 * that it is in; 0 = none.
	 */
	uint32_t (*outer_kind)(struct target *t, struct thread *th, const struct arch_regs *regs);
	/*
	 * Whether @th, at a breakpoint of a function that releases @block, is inside a delete of it
	 * that was already reported before pads knew the thread.
	 */
	bool (*take_deleted)(struct target *t, struct thread *th, taddr_t block);
	/* From now on pads pass requests about plain blocks to ptmem. */
	void (*answer_blocks)(struct address_space *s);

	/* Sampling: the block at @addr becomes a sample, or no longer is one. */
	void (*filter)(struct address_space *s, taddr_t addr, bool is_sample);
	/* The interval of the samples to come is 1 << @shift times the smallest. */
	void (*set_sample_shift)(struct address_space *s, uint32_t shift);
	/* Adds all calls counted in @s, by pads and at breakpoints, to @totals. */
	void (*add_totals)(const struct address_space *s, struct call_totals *totals);

	/* For a pad call that @th is in: an exception is created there; is thrown; was caught in
	 * the frame at @sp. */
	void (*suspend)(struct target *t, struct thread *th, const struct arch_regs *regs);
	void (*raise)(struct thread *th, taddr_t exception);
	void (*resume)(struct thread *th, taddr_t exception, taddr_t sp);
};

#endif
