/*
 * From the registers and the stack of a thread to the code addresses of its
 * call chain. Knows nothing of ptrace or malloc: memory comes through the view.
 *
 * One struct unwind serves one address space. It owns the rule table (see
 * arch/unwind_rule.h), keeps a copy of it in memory given by the caller so that the
 * recorder in the target can read it too, and asks for modules by address.
 */
#ifndef PTMEM_UNWIND_UNWIND_H
#define PTMEM_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "arch/unwind_rule.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/pads/own_code.h"

struct unwind;

struct unwind_ops {
	/* The module mapped at @pc now, or NULL (JIT code, unmapped). */
	const struct module *(*module)(void *ctx, taddr_t pc);
	/*
	 * Whether @place is in code of ptmem, and the way out of it: such frames are left out, and
	 * a moved instruction is at its original address. NULL = there is no such code.
	 */
	bool (*own)(void *ctx, const struct own_place *place, struct own_code *out);
	/* Whether @pc is mapped as code. NULL, and false, where it is unknown. */
	bool (*is_code)(void *ctx, taddr_t pc);
	void *ctx;
};

/* Why a walk ended. Only UNWIND_COMPLETE is a whole stack. */
enum unwind_end {
	UNWIND_COMPLETE,   /* the outermost frame: undefined return address, or pc 0 or 1 */
	UNWIND_NO_CFI,     /* code that neither CFI nor frame pointers explain */
	UNWIND_NO_MEMORY,  /* a stack slot could not be read */
	UNWIND_LOOP,       /* the CFA did not move outwards */
	UNWIND_TOO_DEEP,   /* more than @max frames */
	UNWIND_END_COUNT,
};
extern const char *const unwind_end_text[UNWIND_END_COUNT];

/* How often each way was taken; for --stats. */
struct unwind_stats {
	uint64_t frames;
	uint64_t rules;            /* rules compiled */
	uint64_t slow_frames;      /* frames that no rule can say (slow.c) */
	uint64_t fp_frames;        /* frames by frame pointer, without CFI */
	uint64_t guessed_frames;   /* frames that libunwind guessed, in code of no module */
	uint64_t ends[UNWIND_END_COUNT];
};

struct unwind *unwind_new(const struct arch *arch, const struct unwind_ops *ops);
void unwind_free(struct unwind *u);

/*
 * Walks the stack of @view. pcs[0] is view->regs.pc - 1 (the call in the caller
 * of the probed function), and so outwards, innermost first: every entry is the
 * return address minus 1, whatever kind of frame it is; but pcs[0] is where the
 * thread is if view->is_stopped. At most @max entries are
 * written; returns their number (at least 1). *end_out says why it ended.
 */
size_t unwind_walk(struct unwind *u, const struct stack_view *view, taddr_t *pcs, size_t max,
		   enum unwind_end *end_out);

/*
 * The same for a thread that is stopped anywhere: view->regs are its own registers.
 * pcs are not lowered: pcs[0] is its pc, then return addresses and, after signal
 * frames, interrupted pcs, as they are. Those in code of ptmem are among them.
 */
size_t unwind_walk_stopped(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			   size_t max, enum unwind_end *end_out);

/*
 * The walk from @view again by libunwind, as a second opinion. It may end before the outermost
 * frame, where libunwind has no CFI. Takes microseconds for each frame.
 */
size_t unwind_walk_again(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			 size_t max);

/* The stack pointer in its outermost frame; false: the walk ends before. */
bool unwind_outermost_sp(struct unwind *u, const struct stack_view *view, taddr_t *sp_out);

/* Drops every rule and cache for [start, end), whose code was unmapped or changed. */
void unwind_forget(struct unwind *u, taddr_t start, taddr_t end);

/* Whether the walk from @view passes a signal frame before its CFA reaches @outer_sp. */
bool unwind_in_signal(struct unwind *u, const struct stack_view *view, taddr_t outer_sp);

/*
 * The rules so far, for the recorder. With unwind_set_memory the table has a copy in
 * @memory (zeroed, (1 << bits) slots, the caller's, must outlive @u or the next
 * such call), which is written and never read, and as many slots; when it is three
 * quarters full @on_full is called, which may call unwind_set_memory with more.
 */
const struct unwind_rule_table *unwind_rules(const struct unwind *u);
void unwind_set_memory(struct unwind *u, struct unwind_rule *memory, uint32_t bits,
		       void (*on_full)(void *ctx), void *ctx);

/* The rule for the exact address @pc (compiled now if it is new); never NULL. */
const struct unwind_rule *unwind_rule_get(struct unwind *u, taddr_t pc);

const struct unwind_stats *unwind_stats(const struct unwind *u);

#endif
