/*
 * From the registers and the stack of a thread to the code addresses of its
 * call chain. Independent of ptrace and malloc: memory is read through the view.
 *
 * One struct unwind serves one address space. It owns the rule table (see
 * arch/unwind_rule.h), keeps a copy of it in memory given by the caller so that the
 * recorder in the target can read it too, and looks up modules by address.
 */
#ifndef PTMEM_UNWIND_UNWIND_H
#define PTMEM_UNWIND_UNWIND_H

#include "arch/arch.h"
#include "arch/unwind_rule.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"

/* Code that ptmem put into the process: stubs, pads, the recorder, moved instructions. */
enum own_kind {
	OWN_CALL,  /* a return address: the next frame is the caller of the watched function */
	OWN_MOVED, /* a copy of an instruction of the program, or equivalent to a function entry */
	OWN_FRAME, /* a frame of a pad or of the recorder, described by CFI */
};

struct own_place {
	taddr_t pc;
	bool is_exact;         /* pc is an interrupted instruction, not a return address */
};

struct own_code {
	enum own_kind kind;
	taddr_t pc;            /* MOVED: address of the original; CALL: 0, it is below the CFA */
	uint32_t up;           /* CALL, MOVED: offset to the stack pointer there */
	/* FRAME */
	const struct module *module; /* file and bias that describe it, valid until the next call */
	taddr_t entry_pc;    /* the watched function's entry; 0 = none, the frame is hidden */
};

/*
 * Code that the program generated: what its run-time system or a map of it says of the function at
 * an address.
 */
enum generated_kind {
	GENERATED_RANGE, /* where it is; the way to the caller is in its instructions */
	GENERATED_SP,    /* CFA = stack pointer + size, with the frame pointer saved at CFA - 16 */
	GENERATED_FP,    /* a frame pointer at which the caller's is, and then the return address */
};

struct generated_place {
	taddr_t pc;
	bool is_exact;   /* pc is an interrupted instruction, not a return address */
	taddr_t sp, fp;  /* of its frame; fp 0 = unknown */
	const struct stack_view *view;
};

struct generated_code {
	enum generated_kind kind;
	taddr_t start, end;
	uint32_t size;       /* GENERATED_SP: bytes, at a return address */
	taddr_t caller_sp;   /* GENERATED_FP: where the caller's frame ends; 0 = at the CFA */
	/*
	 * The same holds for each return to pc, until unwind_forget: then a rule may be published.
	 * With GENERATED_FP caller_sp must be 0 then.
	 */
	bool is_fixed;
	uint64_t shown_pc;   /* to be reported in the place of pc; 0 = pc */
};

struct unwind;

struct unwind_ops {
	/* The module mapped at @pc, or NULL (JIT code, unmapped). */
	const struct module *(*module)(void *ctx, taddr_t pc);
	/*
	 * What is known of generated code. Asked where no ELF file is and no rule is known; false =
	 * nothing. NULL = there is none.
	 */
	bool (*generated)(void *ctx, const struct generated_place *place,
			  struct generated_code *out);
	/*
	 * Whether @place is in code of ptmem, and how to leave it. Such frames are hidden, and a
	 * moved instruction is reported at its original address. NULL = there is no such code.
	 */
	bool (*own)(void *ctx, const struct own_place *place, struct own_code *out);
	/* Whether @pc is mapped as executable. NULL, or false if unknown. */
	bool (*is_code)(void *ctx, taddr_t pc);
	void *ctx;
};

/* Why a walk ended. Only UNWIND_COMPLETE means a complete stack. */
enum unwind_end {
	/*
	 * Outermost frame: by CFI, whose return address is undefined, 0 or 1; without CFI by its
	 * address, an entry, or by a frame pointer and a return address of 0 (the ABI's mark)
	 */
	UNWIND_COMPLETE,
	UNWIND_NO_CFI,     /* code without CFI and frame pointer, or what it leads to is no end */
	UNWIND_NO_MEMORY,  /* a stack slot could not be read */
	UNWIND_LOOP,       /* the CFA did not move outwards */
	UNWIND_TOO_DEEP,   /* more than @max frames */
	UNWIND_END_COUNT,
};
extern const char *const unwind_end_text[UNWIND_END_COUNT];

/* How often each method was used; for --stats. */
struct unwind_stats {
	uint64_t frames;
	uint64_t rules;            /* rules compiled */
	uint64_t slow_frames;      /* frames that no rule can describe (slow.c) */
	uint64_t fp_frames;        /* frames by frame pointer, without CFI */
	uint64_t guessed_frames;   /* guessed by frame pointer, in code outside all modules */
	uint64_t generated_frames; /* in generated code, without a rule in the table */
	uint64_t ends[UNWIND_END_COUNT];
};

struct unwind *unwind_new(const struct arch *arch, const struct unwind_ops *ops);
void unwind_free(struct unwind *u);

/*
 * Opens the CFI of @m and checks it. Where stacks are walked while a process is stopped, this saves
 * milliseconds if it was done before.
 */
void unwind_prepare(const struct module *m);

/*
 * Walks the stack of @view, innermost frame first. pcs[0] is view->regs.pc - 1 (the call in the
 * caller of the probed function), or the thread's pc itself if view->is_stopped. Each further entry
 * is a return address minus 1, or after a signal frame the interrupted pc itself: at the first
 * instruction of a function, the address before it is another's. Writes at most @max entries and
 * returns their number (at least 1). *end_out is the reason for the end.
 */
size_t unwind_walk(struct unwind *u, const struct stack_view *view, taddr_t *pcs, size_t max,
		   enum unwind_end *end_out);

/*
 * From now on unwind_walk also stores the frame pointer in each frame, 0 if it is unknown, to @fp,
 * which is the caller's and has as many elements as its pcs. NULL: not any more.
 */
void unwind_keep_fp(struct unwind *u, taddr_t *fp);

/*
 * The same for a thread that is stopped anywhere: view->regs are its current registers. pcs are not
 * lowered: pcs[0] is its pc, followed by return addresses and, after signal frames, interrupted
 * pcs. Frames in code of ptmem are included.
 */
size_t unwind_walk_stopped(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			   size_t max, enum unwind_end *end_out);

/* The same for stack pointers, in walks of unwind_walk_stopped only. */
void unwind_keep_sp(struct unwind *u, taddr_t *sp);

/*
 * Repeats the walk from @view with libunwind-ptrace, as a second opinion. view->stopped is a thread
 * that this process traces. The walk may end before the outermost frame, where libunwind has no CFI
 * or where code of ptmem begins: 0 if that is at once. Takes up to 0.1 ms for each frame.
 */
size_t unwind_walk_again(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			 size_t max);

/*
 * The stack pointers of code that signal handlers interrupted, for a thread that is stopped
 * anywhere, innermost first. Returns their number, @max at most.
 */
size_t unwind_interrupted(struct unwind *u, const struct stack_view *view, taddr_t *sp, size_t max);

/*
 * The program may have put other code into memory that it writes itself: what is known of such code
 * is compared with it again, each part once.
 */
void unwind_recheck(struct unwind *u);

/* Drops all rules and caches for [start, end), whose code was unmapped or changed. */
void unwind_forget(struct unwind *u, taddr_t start, taddr_t end);

/* The stack pointer in the outermost frame; false if the walk does not reach it on one stack. */
bool unwind_outermost_sp(struct unwind *u, const struct stack_view *view, taddr_t *sp_out);

/*
 * Whether the walk from @view passes a signal frame before the CFA reaches @outer_sp; false if @u
 * is NULL.
 */
bool unwind_in_signal(struct unwind *u, const struct stack_view *view, taddr_t outer_sp);

/*
 * Whether the walk from @view leads to a stack outside of [@low, @high], by a signal frame or code
 * that switches stacks; false if @u is NULL.
 */
bool unwind_leaves(struct unwind *u, const struct stack_view *view, taddr_t low, taddr_t high);

/*
 * Access to the rules for the recorder. After unwind_set_memory the table is copied to @memory
 * (zeroed, (1 << bits) slots), which is never read, and gets the same number of slots. The caller
 * owns @memory; it must outlive @u or the next such call. When the table is three quarters full
 * @on_full is called, which may call unwind_set_memory with more.
 */
const struct unwind_rule_table *unwind_rules(const struct unwind *u);
void unwind_set_memory(struct unwind *u, struct unwind_rule *memory, uint32_t bits,
		       void (*on_full)(void *ctx), void *ctx);

/*
 * Whether stacks of the process continue on other stacks (RULE_SWITCH), so that a copy of one is
 * not all of it.
 */
bool unwind_has_switch(const struct unwind *u);

/*
 * The code of the program itself, if nearly all frames in it have a frame pointer and no CFI
 * describes them. False if that is not so, not known yet, or a guess was wrong.
 */
bool unwind_framed(const struct unwind *u, taddr_t *start_out, uint64_t *size_out);

/*
 * Whether the frame with return address @pc, in such code, is left by its frame pointer, and
 * @caller can be what that leads to. If so, its rule is known from now on; if not, unwind_framed is
 * false.
 */
bool unwind_confirm_framed(struct unwind *u, taddr_t pc, taddr_t caller);

/* The rule for the exact address @pc, compiled now if it is new; never NULL. */
const struct unwind_rule *unwind_rule_get(struct unwind *u, taddr_t pc);

const struct unwind_stats *unwind_stats(const struct unwind *u);

/*
 * A return address in (@start, @end) whose unwind rule describes the frame of a stub
 * (arch.stub_cfa_offset): *saved_out is the callee-saved register it restores (index of
 * arch.dwarf_saved), -1 = none. 0 if there is no such address.
 */
taddr_t unwind_find_stub_row(struct unwind *u, taddr_t start, taddr_t end, int *saved_out);

/*
 * The same in @m, for code that does what the rule describes: it restores that register and
 * returns. So a thread that returns there leaves a stub's frame like an exception. No call precedes
 * it (it is not a return address of the program), and its function has no personality routine that
 * could catch the exception.
 */
taddr_t unwind_find_stub_epilogue(struct unwind *u, const struct module *m, int *saved_out);

#endif
