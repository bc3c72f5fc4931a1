/*
 * Queries of tracee code about stacks of an address space, implemented by src/unwind. An address
 * space that is not profiled has no unwinder (NULL).
 */
#ifndef PTMEM_TRACEE_STATE_UNWIND_QUERIES_H
#define PTMEM_TRACEE_STATE_UNWIND_QUERIES_H

#include "arch/unwind_rule.h"
#include "base/types.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"

/* @view has the registers and the stack of a stopped thread. */
struct unwinder {
	void *ctx;
	/* Reads the rules of @module's file, which takes long the first time. */
	void (*prepare)(const struct module *module);
	/* The stack pointer in the outermost frame; false if the walk does not reach it. */
	bool (*outermost_sp)(void *ctx, const struct stack_view *view, taddr_t *sp_out);
	/* Whether the walk passes a signal frame before it reaches @outer_sp. */
	bool (*in_signal)(void *ctx, const struct stack_view *view, taddr_t outer_sp);
	/*
	 * The stack pointers of code that signal handlers on the stack of a thread stopped anywhere
	 * interrupted, innermost first. Returns their number, @max at most.
	 */
	size_t (*interrupted)(void *ctx, const struct stack_view *view, taddr_t *sp, size_t max);
	/* All pcs on the stack of a thread stopped anywhere, without subtracting 1; *is_whole_out:
	 * the walk reached the outermost frame. Returns their number. */
	size_t (*stack_pcs)(void *ctx, const struct stack_view *view, taddr_t *pcs, size_t max,
			    bool *is_whole_out);
	/*
	 * A return address in (@start, @end) whose unwind rule describes the frame of a stub
	 * (arch.stub_cfa_offset): *saved_out is the callee-saved register it restores (index of
	 * arch.dwarf_saved), -1 = none. 0 if there is no such address.
	 */
	taddr_t (*find_stub_row)(void *ctx, taddr_t start, taddr_t end, int *saved_out);
	/*
	 * The same in @module, for code that does what the rule describes: it restores that
	 * register and returns. So a thread that returns there leaves a stub's frame like an
	 * exception. No call precedes it (it is not a return address of the program), and its
	 * function has no personality routine that could catch the exception.
	 */
	taddr_t (*find_stub_epilogue)(void *ctx, const struct module *module, int *saved_out);
	/* Copies rules to @memory (1 << bits slots, zeroed) from now on, for pads. */
	void (*set_rule_memory)(void *ctx, struct unwind_rule *memory, uint32_t bits);
};

static inline bool unwinder_in_signal(const struct unwinder *u, const struct stack_view *view,
				      taddr_t outer_sp)
{
	return u && u->in_signal(u->ctx, view, outer_sp);
}

#endif
