/*
 * One frame of a walk, its known registers and its access to the stack, and the two ways to its
 * caller: a rule of the table (rules.c), the CFI itself or the frame pointer (slow.c); and
 * libunwind's walk, to compare with (libunwind.c). For the files of this directory.
 */
#ifndef PTMEM_UNWIND_FRAME_H
#define PTMEM_UNWIND_FRAME_H

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "tracee/state/heap_event.h"
#include "unwind/unwind.h"

/*
 * The table of rules (arch/unwind_rule.h) and the compiler that fills it from
 * CFI, one code address at a time.
 */

struct rules {
	const struct arch *arch;
	const struct unwind_ops *ops;
	struct unwind_rule_table table;
	struct unwind_rule *shared;     /* a copy of the table, never read; NULL = none */
	/* slots with a rule that is not forgotten */
	VEC(uint32_t) live;
	struct unwind_rule spare;       /* holds answers that are not entered into the table */
	void (*on_full)(void *ctx);
	void *on_full_ctx;
	bool has_switch;                    /* RULE_SWITCH, or a walk came to another stack */
	bool is_full_reported;              /* on_full was called for this memory */
	uint64_t compiled;
};

void rules_init(struct rules *r, const struct arch *arch, const struct unwind_ops *ops);
void rules_deinit(struct rules *r);

/* The rule for the return address @pc if it is in the table, else NULL. */
static inline const struct unwind_rule *rules_find(const struct rules *r, taddr_t pc)
{
	const struct unwind_rule *rule = unwind_rule_find(r->table.slot, r->table.bits, pc);

	return rule && rule->kind != RULE_NONE ? rule : NULL;
}

/*
 * Compiles the rule for @pc without entering it. @pc is a return address, or, if @is_exact, the
 * address of an interrupted instruction. True if the rule is only a guess from reading the code:
 * check it before entering it.
 */
bool rules_compile(const struct rules *r, taddr_t pc, bool is_exact, struct unwind_rule *rule_out);

/*
 * The rule for the return address @pc from the code that follows it: another guess, if that of
 * rules_compile is wrong. False if there is none.
 */
bool rules_compile_return(const struct rules *r, taddr_t pc, struct unwind_rule *rule_out);

/* Whether @rule leaves a frame by its frame pointer, as a pad does that guesses. */
static inline bool rule_is_framed(const struct unwind_rule *rule)
{
	return rule->kind == RULE_FP && rule->cfa_offset == 16 && rule->saved & 1 &&
	       rule->slot[0] == -2;
}

/* Enters a rule for a return address that has none. The result is valid until the next call. */
const struct unwind_rule *rules_enter(struct rules *r, const struct unwind_rule *rule);

void rules_forget(struct rules *r, taddr_t start, taddr_t end);
void rules_set_memory(struct rules *r, struct unwind_rule *memory, uint32_t bits);

/*
 * One frame of a walk: its known registers, and access to the stack. Shared by the files of this
 * directory.
 */

struct frame {
	struct arch_unwind_regs regs; /* regs.reg[arch->dwarf_pc]: exact, not minus 1 */
	uint64_t known;               /* bit n: register n is known */
	/* interrupted by a signal: look up CFI at pc, not at pc - 1 */
	bool is_exact;
	/* of the frame just left: the address to show; 0 = its pc */
	taddr_t shown_pc;
};

#define FRAME_KNOWS_ALL ((UINT64_C(1) << ARCH_DWARF_REGS) - 1)

/*
 * The word at @addr, of a stack: 0 or -EFAULT. Where the thread has gone on, later calls have
 * overwritten what is not in the copy.
 */
static inline int frame_read_word(const struct stack_view *view, taddr_t addr, uint64_t *word_out)
{
	uint64_t offset = addr - view->start;

	if (__builtin_expect(view->size >= 8 && offset <= view->size - 8, 1)) {
		memcpy(word_out, view->data + offset, 8);
		return 0;
	}
	if (view->is_past || !view->read || view->read(view->read_ctx, addr, word_out, 8) != 0)
		return -EFAULT;
	return 0;
}

/* Sets the pc of @frame to its return address, by @rule: 0 or -EFAULT. */
static inline int frame_read_return(const struct arch *arch, const struct unwind_rule *rule,
				    const struct stack_view *view, taddr_t cfa, struct frame *frame)
{
	uint64_t *reg = frame->regs.reg;
	int64_t slot = unwind_return_slot(rule);

	/* Only an interrupted function has not called another one since. */
	if (slot == RULE_LINK && !frame->is_exact)
		return -EFAULT;
	if (slot == RULE_LINK)
		reg[arch->dwarf_pc] = reg[arch->dwarf_return];
	else if (frame_read_word(view, cfa + 8 * (uint64_t)slot, &reg[arch->dwarf_pc]) != 0)
		return -EFAULT;
	reg[arch->dwarf_pc] = arch_return_address(reg[arch->dwarf_pc]);
	return 0;
}

/* The address used for looking up CFI and symbols. */
static inline taddr_t frame_lookup_pc(const struct arch *arch, const struct frame *frame)
{
	return frame->regs.reg[arch->dwarf_pc] - !frame->is_exact;
}

/*
 * One step outwards for frames that no rule can describe: CFI rows with expressions, signal
 * frames, code without CFI.
 */

enum slow_way { SLOW_CFI, SLOW_SIGNAL, SLOW_FRAME_POINTER };

/*
 * Replaces *frame with its caller. Returns 0 and sets *way_out; 1 if the frame is the outermost;
 * -ENODATA if no method applies; -EFAULT if memory could not be read.
 */
int slow_step(const struct arch *arch, const struct unwind_ops *ops, const struct stack_view *view,
	      struct frame *frame, enum slow_way *way_out);

/* The same by the CFI of @module only; -ENOENT if it has none. */
int slow_step_in(const struct arch *arch, const struct module *module,
		 const struct stack_view *view,
		 struct frame *frame);

/*
 * The caller of @frame by its frame pointer alone, a guess: the caller checks where it leads. 0 or
 * -ENODATA.
 */
int slow_guess(const struct arch *arch, const struct stack_view *view, const struct frame *frame,
	       struct frame *caller_out);

/* Whether @pc can be a return address: it follows a call, is a signal trampoline, or is 0. */
bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view,
			    taddr_t pc);

/*
 * libunwind-ptrace as a second opinion (--verify-stacks): a walk of a stopped thread's stack with
 * its own list of mappings, its own search and parser of .eh_frame, and memory read by ptrace.
 *
 * The walk starts at the registers of a view: those of the thread are inside a stub. libunwind
 * accesses registers and memory only through callbacks, which refuse to write. Its input is
 * untrusted, and it is less careful than libdw: a division in an expression can trap, and a branch
 * can leave the expression. So it gets only rows that libdw has decoded from a checked section
 * (cfi.c) and that neither divide nor branch; their bytes come from the checked file, not from the
 * process. The number of words read for one frame is limited. What remains is its search in files
 * and tables that a hostile program may have prepared: the option is for programs that are trusted.
 */

struct libunwind;

struct libunwind *libunwind_new(const struct arch *arch, const struct unwind_ops *ops);
void libunwind_free(struct libunwind *l); /* may be NULL */

/* Walks from @view by CFI only, until there is no usable row. @pcs, result: as for unwind_walk. */
size_t libunwind_walk(struct libunwind *l, const struct stack_view *view, taddr_t *pcs,
		      size_t max);

#endif
