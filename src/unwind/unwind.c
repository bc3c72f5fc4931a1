/*
 * The walk from a stack view to code addresses, and the object that callers use.
 *
 * The current frame moves outwards: mostly by the rule of its return address (rules.c), which takes
 * one look-up and a few loads; else by slow.c, with all registers. Each step must move the CFA
 * outwards, except at signal frames, where the stack may change. So a walk always ends.
 */
#include "unwind/unwind.h"

#include <stdlib.h>

#include "arch/unwind_code.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "unwind/cfi.h"
#include "unwind/frame.h"

#define MAX_FRAMES_TO_SIGNAL 100000 /* limits the search on a corrupt stack */
#define MAX_FRAMES_TO_OUTERMOST 10000000
#define MAX_FRAMES_TO_INTERRUPTED 1000 /* all threads are walked while they are stopped */

/*
 * A rule found in generated code, so that the code is not read again at each visit. It is checked
 * by the code that follows, since the program may have put other code there.
 */
#define GENERATED_BYTES 64u
#define GENERATED_RULES 4096u

struct generated_rule {
	taddr_t pc, start;             /* of the function; 0 = unknown */
	uint8_t code[GENERATED_BYTES]; /* at pc */
	struct unwind_rule rule;
	uint64_t epoch;                /* struct unwind.epoch at which the code was the same */
	taddr_t caller;                /* a return address since then; 0 = unknown */
};

struct unwind {
	struct rules rules;
	struct unwind_ops ops;
	struct libunwind *libunwind; /* NULL until needed */
	struct unwind_stats stats;
	struct generated_rule *generated; /* GENERATED_RULES of them; NULL until needed */
	taddr_t *fp; /* the caller's: walks store frame pointers; NULL = they do not */
	taddr_t *sp; /* likewise: stack pointers, in walks of stopped threads */
	taddr_t framed;                   /* see unwind_framed */
	uint64_t framed_size;             /* 0 = none */
	bool has_unframed;                /* a guess was wrong */
	uint64_t epoch;                   /* unwind_recheck was called so often */
	bool has_guessed;                 /* the current walk, at least once */
};

const char *const unwind_end_text[UNWIND_END_COUNT] = {
	[UNWIND_COMPLETE] = "complete",
	[UNWIND_NO_CFI] = "code without unwind information",
	[UNWIND_NO_MEMORY] = "stack memory that could not be read",
	[UNWIND_LOOP] = "a frame that did not lead outwards",
	[UNWIND_TOO_DEEP] = "too many frames",
};

/* The result of a step if the walk continues. */
enum step {
	STEP_OUT = -1,
	STEP_SIGNAL = -2,
	STEP_SAME = -3, /* the frame was ptmem's: *frame is now the program's */
	STEP_SWITCH = -4, /* to another stack */
};

void unwind_prepare(const struct module *m)
{
	if (m->file)
		cfi_prepare(m->file);
}

struct unwind *unwind_new(const struct arch *arch, const struct unwind_ops *ops)
{
	struct unwind *u = xcalloc(1, sizeof(*u));

	u->ops = *ops;
	rules_init(&u->rules, arch, &u->ops);
	return u;
}

void unwind_free(struct unwind *u)
{
	if (!u)
		return;
	rules_deinit(&u->rules);
	libunwind_free(u->libunwind);
	free(u->generated);
	free(u);
}

#define SWITCH_DEPTH_MAX ((uint64_t)1 << 30) /* bytes; no goroutine's stack is larger */

/* The stack pointer that the caller of @frame has on its own stack, by RULE_SWITCH. */
static int read_switch(const struct unwind_rule *rule, const struct stack_view *view,
		       taddr_t sp, taddr_t *sp_out)
{
	uint64_t g, depth, top;

	if (view->is_past ||
	    frame_read_word(view, sp + 8 * (int64_t)rule->slot[SWITCH_G], &g) != 0 ||
	    frame_read_word(view, sp + 8 * (int64_t)rule->slot[SWITCH_DEPTH], &depth) != 0 ||
	    depth > SWITCH_DEPTH_MAX ||
	    frame_read_word(view, g + 8 * (uint64_t)rule->slot[SWITCH_TOP], &top) != 0)
		return -EFAULT;
	*sp_out = top - depth;
	return 0;
}

/*
 * Applies a rule that is neither SLOW nor END. Returns an enum unwind_end, STEP_OUT or STEP_SWITCH.
 */
static inline int step_rule(const struct arch *arch, const struct unwind_rule *rule,
			    const struct stack_view *view, struct frame *frame)
{
	uint64_t *reg = frame->regs.reg;
	taddr_t cfa, base, sp = reg[arch->dwarf_sp];
	int way = STEP_OUT;

	switch (rule->kind) {
	case RULE_SP:
		cfa = base = sp + (int64_t)rule->cfa_offset;
		break;
	case RULE_FP:
	case RULE_REG:
		if (!(frame->known >> arch->dwarf_saved[rule->reg] & 1))
			return UNWIND_NO_CFI;
		cfa = base = reg[arch->dwarf_saved[rule->reg]] + (int64_t)rule->cfa_offset;
		break;
	case RULE_FP_DEREF:
		base = reg[arch->dwarf_fp];
		if (!(frame->known >> arch->dwarf_fp & 1))
			return UNWIND_NO_CFI;
		if (frame_read_word(view, base + (int64_t)rule->cfa_offset, &cfa) != 0)
			return UNWIND_NO_MEMORY;
		break;
	case RULE_SP_DEREF:
		if (frame_read_word(view, sp + 8 * (int64_t)rule->slot[SWITCH_DEPTH], &cfa) != 0)
			return UNWIND_NO_MEMORY;
		cfa = base = cfa + (uint64_t)(int64_t)rule->cfa_offset;
		break;
	case RULE_SWITCH:
		if (read_switch(rule, view, sp, &cfa) != 0)
			return UNWIND_NO_MEMORY;
		cfa = base = cfa + (uint64_t)(int64_t)rule->cfa_offset;
		way = STEP_SWITCH;
		break;
	default:
		return UNWIND_NO_CFI;
	}
	/* While a pad calls the original, the thread's stack pointer is the CFA itself. */
	if (way == STEP_OUT && (cfa < sp || (cfa == sp && !frame->is_exact)))
		return UNWIND_LOOP;
	if (frame_read_return(arch, rule, view, cfa, frame) != 0)
		return UNWIND_NO_MEMORY;
	for (unsigned int saved = rule->saved; saved; saved &= saved - 1) {
		int i = __builtin_ctz(saved);
		if (frame_read_word(view, base + 8 * (int64_t)rule->slot[i],
				    &reg[arch->dwarf_saved[i]]) != 0)
			return UNWIND_NO_MEMORY;
		frame->known |= UINT64_C(1) << arch->dwarf_saved[i];
	}
	reg[arch->dwarf_sp] = cfa;
	frame->is_exact = false;
	return way;
}

/* Whether @pc is in an ELF file. */
static bool has_file(const struct unwind *u, taddr_t pc)
{
	const struct module *m = u->ops.module(u->ops.ctx, pc);

	return m && m->file;
}

/* Whether @pc is in code of no module: an interpreter's or a JIT compiler's. */
static bool is_generated_code(const struct unwind *u, taddr_t pc)
{
	const struct unwind_ops *ops = &u->ops;

	return ops->is_code && !has_file(u, pc) && ops->is_code(ops->ctx, pc);
}

/*
 * Steps through generated code whose caller has no call before the return address: an interpreter
 * pushes those itself. The result must lie outwards, in more such code or after a call.
 */
static int step_guess(struct unwind *u, const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = u->rules.arch;
	struct frame caller;

	if (!is_generated_code(u, frame_lookup_pc(arch, frame)) ||
	    slow_guess(arch, view, frame, &caller) != 0)
		return UNWIND_NO_CFI;
	taddr_t pc = caller.regs.reg[arch->dwarf_pc];
	if (unwind_is_end(pc) ||
	    (!is_generated_code(u, pc - 1) && !slow_is_return_address(&u->ops, view, pc)))
		return UNWIND_NO_CFI;
	u->stats.guessed_frames++;
	u->has_guessed = true;
	*frame = caller;
	return STEP_OUT;
}

/*
 * The walk has come to a stack of which @view has no copy, although the thread has gone on: stacks
 * of this process continue on others.
 */
static void note_other_stack(struct unwind *u)
{
	if (!u->has_guessed)
		u->rules.has_switch = true;
}

/* Whether @frame is on a stack that @view, of a thread that has gone on, has no copy of. */
static bool is_gone(const struct arch *arch, const struct stack_view *view,
		    const struct frame *frame)
{
	return view->is_past && frame->regs.reg[arch->dwarf_sp] - view->start >= view->size;
}

/* Steps by slow.c. Returns an enum unwind_end, STEP_OUT or STEP_SIGNAL. */
static int step_slow(struct unwind *u, const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = u->rules.arch;
	taddr_t sp = frame->regs.reg[arch->dwarf_sp];
	bool was_exact = frame->is_exact;
	enum slow_way way;
	int ret = slow_step(arch, &u->ops, view, frame, &way);

	if (ret == 1)
		return UNWIND_COMPLETE;
	if (ret == -ENODATA)
		return step_guess(u, view, frame);
	if (ret != 0)
		return ret == -EFAULT ? UNWIND_NO_MEMORY : UNWIND_NO_CFI;
	if (way == SLOW_FRAME_POINTER)
		u->stats.fp_frames++;
	else
		u->stats.slow_frames++;
	u->has_guessed |= way == SLOW_FRAME_POINTER;
	if (way == SLOW_SIGNAL && is_gone(arch, view, frame))
		note_other_stack(u);
	if (way == SLOW_SIGNAL)
		return STEP_SIGNAL;
	/* without a pushed return address an interrupted function may have nothing on the stack */
	if (!arch->return_size && was_exact && frame->regs.reg[arch->dwarf_sp] == sp)
		return STEP_OUT;
	return frame->regs.reg[arch->dwarf_sp] > sp ? STEP_OUT : UNWIND_LOOP;
}

/* Steps through a frame of a pad (shown as the watched function) or of the recorder (hidden). */
static int step_own(const struct unwind *u, const struct own_code *own,
		    const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = u->rules.arch;
	taddr_t sp = frame->regs.reg[arch->dwarf_sp];
	bool was_exact = frame->is_exact;
	int ret = slow_step_in(arch, own->module, view, frame);

	if (ret != 0)
		return ret == -EFAULT ? UNWIND_NO_MEMORY : UNWIND_NO_CFI;
	taddr_t cfa = frame->regs.reg[arch->dwarf_sp];
	/* While a pad calls the original, the thread's stack pointer is the CFA itself. */
	if (cfa < sp || (cfa == sp && !was_exact))
		return UNWIND_LOOP;
	frame->shown_pc = own->entry_pc;
	return own->entry_pc ? STEP_OUT : STEP_SAME;
}

/* Steps if the frame's pc is in code of ptmem. Returns false if it is not. */
static bool leave_own(struct unwind *u, const struct stack_view *view, struct frame *frame,
		      int *step_out)
{
	const struct arch *arch = u->rules.arch;
	uint64_t *reg = frame->regs.reg;
	const struct own_place place = {reg[arch->dwarf_pc], frame->is_exact};
	struct own_code own;

	if (!u->ops.own || !u->ops.own(u->ops.ctx, &place, &own))
		return false;
	*step_out = STEP_SAME;
	if (own.kind == OWN_FRAME) {
		*step_out = step_own(u, &own, view, frame);
		return true;
	}
	reg[arch->dwarf_sp] += own.up;
	reg[arch->dwarf_pc] = own.pc;
	if (own.kind == OWN_CALL &&
	    frame_read_word(view, reg[arch->dwarf_sp] - 8, &reg[arch->dwarf_pc]) != 0)
		*step_out = UNWIND_NO_MEMORY;
	/* as at the function's entry, whose return address the stub has put there */
	if (own.kind == OWN_MOVED && own.up && !arch->return_size &&
	    frame_read_word(view, reg[arch->dwarf_sp] - 8, &reg[arch->dwarf_return]) != 0)
		*step_out = UNWIND_NO_MEMORY;
	return true;
}

/* The frame pointer is saved as in a frame of C, but the caller's stack may end above that. */
static int step_generated_fp(struct unwind *u, const struct generated_code *code,
			     const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = u->rules.arch;
	struct unwind_rule rule = {.pc = frame->regs.reg[arch->dwarf_pc], .kind = RULE_FP,
				   .cfa_offset = 16, .saved = 1, .slot = {-2}};
	bool was_exact = frame->is_exact;
	unwind_set_return_slot(&rule, -1);
	int way = step_rule(arch, &rule, view, frame);

	if (way == STEP_OUT && code->caller_sp > frame->regs.reg[arch->dwarf_sp])
		frame->regs.reg[arch->dwarf_sp] = code->caller_sp;
	if (way == STEP_OUT && code->is_fixed && !was_exact)
		rules_enter(&u->rules, &rule);
	return way;
}

/*
 * Steps by what unwind_ops.generated knows. Returns false if that is nothing; *code_out is its
 * answer.
 */
static bool step_generated(struct unwind *u, const struct stack_view *view, struct frame *frame,
			   struct generated_code *code_out, int *step_out)
{
	const struct arch *arch = u->rules.arch;
	const uint64_t *reg = frame->regs.reg;
	struct generated_place place = {
		.pc = reg[arch->dwarf_pc], .is_exact = frame->is_exact,
		.sp = reg[arch->dwarf_sp], .view = view,
		.fp = frame->known >> arch->dwarf_fp & 1 ? reg[arch->dwarf_fp] : 0};
	struct generated_code code = {0};

	if (!u->ops.generated || has_file(u, frame_lookup_pc(arch, frame)) ||
	    !u->ops.generated(u->ops.ctx, &place, &code))
		return false;
	*code_out = code;
	if (code.kind == GENERATED_RANGE || code.size > INT32_MAX)
		return false;
	struct unwind_rule rule = {.pc = place.pc, .kind = RULE_SP, .saved = 1, .slot = {-2},
				   .cfa_offset = (int32_t)code.size};
	unwind_set_return_slot(&rule, -1);
	u->stats.generated_frames++;
	frame->shown_pc = code.shown_pc;
	if (code.kind == GENERATED_FP) {
		*step_out = step_generated_fp(u, &code, view, frame);
		return true;
	}
	if (code.is_fixed && !frame->is_exact)
		rules_enter(&u->rules, &rule);
	*step_out = step_rule(arch, &rule, view, frame);
	return true;
}

/* bytes before and after an address in which its function returns */
#define GENERATED_BEFORE 2048u
#define GENERATED_AFTER 4096u
#define GENERATED_MAX 65536u  /* bytes before it, to its function's start */

/* Code around an address. */
struct code_around {
	uint8_t data[GENERATED_BEFORE + GENERATED_AFTER];
	size_t size, at; /* the address is there */
};

/* Reads what is in [@start, @end) and mapped around @pc, as far as it fits. */
static bool read_window(const struct stack_view *view, taddr_t pc, taddr_t start, taddr_t end,
			struct code_around *out)
{
	taddr_t page = pc - pc % PAGE_SIZE_MIN;
	taddr_t low = MAX(start, pc - GENERATED_BEFORE), high = MIN(end, pc + GENERATED_AFTER);
	taddr_t lows[] = {low, MAX(low, page)}, highs[] = {high, MIN(high, page + PAGE_SIZE_MIN)};

	for (unsigned i = 0; i < 4; i++) {
		taddr_t from = lows[i / 2], to = highs[i % 2];

		if (from > pc || to <= pc || view->read(view->read_ctx, from, out->data, to - from))
			continue;
		out->at = pc - from;
		out->size = to - from;
		return true;
	}
	return false;
}

/*
 * The rule for @pc from the instructions of its function, [@range->start, end) if that is known.
 * RULE_SLOW if they do not show it.
 */
static void scan_generated(const struct stack_view *view, taddr_t pc, bool is_exact,
			   const struct generated_code *range, struct unwind_rule *rule)
{
	bool is_known = range->start < range->end && pc >= range->start &&
			pc - range->start <= GENERATED_MAX;
	taddr_t start = is_known ? range->start : pc - GENERATED_BEFORE;
	taddr_t end = is_known ? range->end : pc + GENERATED_AFTER;
	struct code_around w;

	*rule = (struct unwind_rule){.pc = pc, .kind = RULE_SLOW};
	if (!read_window(view, pc, start, end, &w) ||
	    arch_is_sigreturn(w.data + w.at, w.size - w.at))
		return;
	rule->flags = RULE_GUESSED;
	/* at its first instructions a function has not saved yet what it restores */
	if (!(is_exact && is_known) && arch_scan_return(w.data, w.size, w.at, rule) == 0)
		return;
	size_t size = is_known ? (size_t)(pc - !is_exact - range->start) : 0;
	_cleanup_free_ uint8_t *code = xmalloc(size + 1);

	if (size > 0 && view->read(view->read_ctx, range->start, code, size + 1) == 0 &&
	    arch_scan_function(code, size, ARCH_SCAN_GENERATED, rule) == 0)
		return;
	*rule = (struct unwind_rule){.pc = pc, .kind = RULE_SLOW};
}

static struct generated_rule *generated_rule_at(struct unwind *u, taddr_t pc)
{
	_Static_assert(GENERATED_RULES == 4096, "the hash has as many values");
	return &u->generated[unwind_rule_hash(pc, 12)];
}

/* scan_generated, or what it said of the same code before. */
static void find_generated(struct unwind *u, const struct stack_view *view, taddr_t pc,
			   const struct generated_code *range, struct unwind_rule *rule)
{
	uint8_t code[GENERATED_BYTES];

	if (!u->generated)
		u->generated = xcalloc(GENERATED_RULES, sizeof(*u->generated));
	struct generated_rule *known = generated_rule_at(u, pc);

	if (known->pc == pc && known->start == range->start && known->epoch == u->epoch) {
		*rule = known->rule;
		return;
	}
	known->caller = 0;
	known->epoch = u->epoch;
	if (view->read(view->read_ctx, pc, code, sizeof(code)) != 0) {
		known->pc = 0;
		scan_generated(view, pc, false, range, rule);
		return;
	}
	if (known->pc != pc || known->start != range->start ||
	    memcmp(known->code, code, sizeof(code)) != 0) {
		known->pc = pc;
		known->start = range->start;
		memcpy(known->code, code, sizeof(code));
		scan_generated(view, pc, false, range, &known->rule);
	}
	*rule = known->rule;
}

/* Whether @rule, a guess, leads from @frame to a return address, or if @to_end to the end. */
static bool is_plausible(struct unwind *u, const struct stack_view *view, const struct frame *frame,
			 const struct unwind_rule *rule, bool to_end)
{
	const struct arch *arch = u->rules.arch;
	struct frame caller = *frame;

	if (step_rule(arch, rule, view, &caller) != STEP_OUT)
		return false;
	taddr_t pc = caller.regs.reg[arch->dwarf_pc];
	struct generated_rule *known = to_end || !u->generated ? NULL :
				       generated_rule_at(u, rule->pc);

	if (unwind_is_end(pc))
		return to_end;
	if (known && known->pc == rule->pc && known->caller == pc)
		return true;
	if (!slow_is_return_address(&u->ops, view, pc))
		return false;
	if (known && known->pc == rule->pc)
		known->caller = pc;
	return true;
}

#define FRAMED_LEAST 64  /* rules, before a file's code is said to have frame pointers */
#define FRAMED_SHARE 64u /* of so many, one may be another */

/*
 * Notes the code around @pc if it is the program's own, which is never unmapped, and has frame
 * pointers but no CFI.
 */
static void note_framed(struct unwind *u, taddr_t pc)
{
	const struct module *m = u->ops.module(u->ops.ctx, pc - 1);
	struct elf_file *file = m ? m->file : NULL;

	if (!file || !file->has_interp || u->has_unframed || u->framed_size)
		return;
	const struct frame_counts *counts = cfi_frame_counts(file);
	const struct elf_segment *segment = elf_file_segment(file, pc - 1 - m->bias);

	if (!segment || !segment->is_exec || !segment->is_readable ||
	    counts->framed < FRAMED_LEAST || counts->others > counts->framed / FRAMED_SHARE)
		return;
	u->framed = m->bias + segment->vaddr;
	u->framed_size = segment->filesz;
}

/*
 * Compiles the rule for the frame's pc; @range: the function, of generated code. A guess must lead
 * to a valid return address. Returns whether the rule may be entered.
 */
static bool compile(struct unwind *u, const struct stack_view *view, const struct frame *frame,
		    const struct generated_code *range, struct unwind_rule *rule)
{
	const struct arch *arch = u->rules.arch;
	taddr_t pc = frame->regs.reg[arch->dwarf_pc];
	bool is_file = has_file(u, frame_lookup_pc(arch, frame)) || !view->read ||
		       pc < PAGE_SIZE_MIN;
	bool is_guess = true;

	if (is_file)
		is_guess = rules_compile(&u->rules, pc, frame->is_exact, rule);
	else if (frame->is_exact)
		scan_generated(view, pc, true, range, rule);
	else
		find_generated(u, view, pc, range, rule);
	if (is_guess && rule->kind != RULE_SLOW && !is_plausible(u, view, frame, rule, is_file) &&
	    (!is_file || frame->is_exact || !rules_compile_return(&u->rules, pc, rule) ||
	     !is_plausible(u, view, frame, rule, is_file)))
		*rule = (struct unwind_rule){.pc = pc, .kind = RULE_SLOW};
	u->stats.generated_frames += !is_file && rule->kind != RULE_SLOW;
	if (is_file && is_guess && !u->framed_size && rule_is_framed(rule))
		note_framed(u, pc);
	return !frame->is_exact && (is_file || range->is_fixed || rule->kind == RULE_SLOW);
}

/* Moves *frame to its caller. Returns an enum unwind_end, STEP_OUT or STEP_SIGNAL. */
static inline int step(struct unwind *u, const struct stack_view *view, struct frame *frame)
{
	const struct arch *arch = u->rules.arch;
	const struct unwind_rule *rule = NULL;
	struct unwind_rule fresh;
	struct generated_code range = {0};
	int way;

	/* The table holds return addresses; an interrupted pc may need another rule. */
	if (__builtin_expect(!frame->is_exact, 1))
		rule = rules_find(&u->rules, frame->regs.reg[arch->dwarf_pc]);
	if (__builtin_expect(!rule, 0)) {
		if (leave_own(u, view, frame, &way) ||
		    step_generated(u, view, frame, &range, &way))
			return way;
		rule = compile(u, view, frame, &range, &fresh) ? rules_enter(&u->rules, &fresh) :
								 &fresh;
	}
	if (rule->kind == RULE_END)
		return UNWIND_COMPLETE;
	if (rule->kind == RULE_SLOW)
		return step_slow(u, view, frame);
	u->has_guessed |= rule->flags & RULE_GUESSED;
	way = step_rule(arch, rule, view, frame);
	if (way == UNWIND_NO_MEMORY && view->is_past)
		note_other_stack(u);
	if (way == STEP_OUT && rule->flags & RULE_GUESSED &&
	    unwind_is_end(frame->regs.reg[arch->dwarf_pc]))
		return UNWIND_NO_CFI; /* not proven to be the outermost frame */
	return way;
}

void unwind_recheck(struct unwind *u)
{
	u->epoch++;
}

static void start_frame(const struct stack_view *view, struct frame *frame)
{
	*frame = (struct frame){
		.regs = view->regs, .known = FRAME_KNOWS_ALL, .is_exact = view->is_stopped};
}

/* The word at @addr if it is in the copied stack. */
static inline bool copied_word(const struct stack_view *view, taddr_t addr, uint64_t *word_out)
{
	uint64_t offset = addr - view->start;

	if (offset >= view->size || view->size - offset < 8)
		return false;
	memcpy(word_out, view->data + offset, 8);
	return true;
}

/*
 * step() as long as rules are known and simple and the stack is in the copy, which is nearly always
 * the whole walk. Stops before the first other frame and leaves it in *frame. pc and sp are kept in
 * CPU registers, since the walk is one chain of dependent loads. Returns the new number of pcs.
 */
static size_t walk_known(const struct unwind *u, const struct stack_view *from, struct frame *frame,
			 taddr_t *pcs, size_t count, size_t max)
{
	const struct arch *arch = u->rules.arch;
	const struct unwind_rule_table table =
		u->rules.table; /* local copies, which no store can change */
	const struct stack_view copy = {.start = from->start,
					.data = from->data,
					.size = from->size};
	const struct stack_view *view = &copy;
	uint64_t *reg = frame->regs.reg;
	uint64_t known = frame->known;
	taddr_t *const fps = u->fp;
	taddr_t pc = reg[arch->dwarf_pc], sp = reg[arch->dwarf_sp], fp = reg[arch->dwarf_fp];

	while (count < max) {
		const struct unwind_rule *rule = unwind_rule_find(table.slot, table.bits, pc);
		uint64_t next_pc, next_fp = fp;
		if (!rule || (rule->kind != RULE_SP &&
			      (rule->kind != RULE_FP || !(known >> arch->dwarf_fp & 1))))
			break;
		taddr_t cfa =
			(rule->kind == RULE_SP ? sp : fp) + (uint64_t)(int64_t)rule->cfa_offset;
		int64_t slot = unwind_return_slot(rule);
		if (cfa <= sp || slot == RULE_LINK ||
		    !copied_word(view, cfa + 8 * (uint64_t)slot, &next_pc))
			break;
		next_pc = arch_return_address(next_pc);
		if (unwind_is_end(next_pc))
			break;
		unsigned int saved = rule->saved;
		if (saved & 1 &&
		    !copied_word(view, cfa + 8 * (uint64_t)(int64_t)rule->slot[0], &next_fp))
			break;
		known |= (saved & 1) << arch->dwarf_fp;
		for (saved &= ~1u; saved; saved &= saved - 1) {
			int i = __builtin_ctz(saved);
			uint8_t number = arch->dwarf_saved[i];
			if (!copied_word(view, cfa + 8 * (uint64_t)(int64_t)rule->slot[i],
					 &reg[number]))
				goto out; /* those already restored are restored again */
			known |= UINT64_C(1) << number;
		}
		pc = next_pc;
		sp = cfa;
		fp = next_fp;
		if (__builtin_expect(fps != NULL, 0))
			fps[count] = known >> arch->dwarf_fp & 1 ? fp : 0;
		pcs[count++] = pc - 1;
	}
out:
	frame->known = known;
	reg[arch->dwarf_pc] = pc;
	reg[arch->dwarf_sp] = sp;
	reg[arch->dwarf_fp] = fp;
	return count;
}

static void note_fp(const struct unwind *u, const struct frame *frame, size_t number)
{
	const struct arch *arch = u->rules.arch;

	if (u->fp)
		u->fp[number] = frame->known >> arch->dwarf_fp & 1 ?
					frame->regs.reg[arch->dwarf_fp] : 0;
}

void unwind_keep_fp(struct unwind *u, taddr_t *fp)
{
	u->fp = fp;
}

void unwind_keep_sp(struct unwind *u, taddr_t *sp)
{
	u->sp = sp;
}

size_t unwind_walk(struct unwind *u, const struct stack_view *view, taddr_t *pcs, size_t max,
		   enum unwind_end *end_out)
{
	uint8_t dwarf_pc = u->rules.arch->dwarf_pc;
	struct frame frame;
	size_t count = 0;
	int end;

	u->has_guessed = false;
	start_frame(view, &frame);
	note_fp(u, &frame, count);
	pcs[count++] = frame.regs.reg[dwarf_pc] - !frame.is_exact;
	for (;;) {
		if (!frame.is_exact)
			count = walk_known(u, view, &frame, pcs, count, max);
		end = unwind_is_end(frame.regs.reg[dwarf_pc]) ?
			UNWIND_COMPLETE : step(u, view, &frame);
		if (end < 0 && unwind_is_end(frame.regs.reg[dwarf_pc]))
			end = UNWIND_COMPLETE;
		else if (end < 0 && end != STEP_SAME && count >= max)
			end = UNWIND_TOO_DEEP;
		if (frame.shown_pc)
			pcs[count - 1] = frame.shown_pc;
		frame.shown_pc = 0;
		if (end >= 0)
			break;
		if (end == STEP_SAME)
			count--;
		note_fp(u, &frame, count);
		pcs[count++] = frame.regs.reg[dwarf_pc] - !frame.is_exact;
	}
	u->stats.frames += count;
	u->stats.rules = u->rules.compiled;
	u->stats.ends[end]++;
	*end_out = (enum unwind_end)end;
	return count;
}

size_t unwind_walk_stopped(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			   size_t max, enum unwind_end *end_out)
{
	uint8_t dwarf_pc = u->rules.arch->dwarf_pc;
	struct frame frame;
	size_t count = 0;
	int end = STEP_OUT;

	unwind_recheck(u);
	start_frame(view, &frame);
	frame.is_exact = true;
	while (count < max && end < 0) {
		if (u->sp)
			u->sp[count] = frame.regs.reg[u->rules.arch->dwarf_sp];
		pcs[count++] = frame.regs.reg[dwarf_pc];
		end = step(u, view, &frame);
	}
	*end_out = end < 0 ? UNWIND_TOO_DEEP : (enum unwind_end)end;
	return count;
}

size_t unwind_walk_again(struct unwind *u, const struct stack_view *view, taddr_t *pcs,
			 size_t max)
{
	if (!u->libunwind)
		u->libunwind = libunwind_new(u->rules.arch, &u->ops);
	return libunwind_walk(u->libunwind, view, pcs, max);
}

bool unwind_outermost_sp(struct unwind *u, const struct stack_view *view, taddr_t *sp_out)
{
	struct frame frame;
	int end = STEP_OUT;

	unwind_recheck(u);
	start_frame(view, &frame);
	frame.is_exact = true;
	for (size_t i = 0; i < MAX_FRAMES_TO_OUTERMOST && end < 0 && end != STEP_SWITCH; i++)
		end = unwind_is_end(frame.regs.reg[u->rules.arch->dwarf_pc]) ?
			      UNWIND_COMPLETE :
			      step(u, view, &frame);
	*sp_out = frame.regs.reg[u->rules.arch->dwarf_sp];
	return end == UNWIND_COMPLETE;
}

size_t unwind_interrupted(struct unwind *u, const struct stack_view *view, taddr_t *sp, size_t max)
{
	struct frame frame;
	size_t count = 0;
	int end = STEP_OUT;

	unwind_recheck(u);
	start_frame(view, &frame);
	frame.is_exact = true;
	for (size_t i = 0; i < MAX_FRAMES_TO_INTERRUPTED && end < 0 && count < max; i++) {
		end = unwind_is_end(frame.regs.reg[u->rules.arch->dwarf_pc]) ?
			      UNWIND_COMPLETE :
			      step(u, view, &frame);
		if (end == STEP_SIGNAL)
			sp[count++] = frame.regs.reg[u->rules.arch->dwarf_sp];
	}
	return count;
}

bool unwind_in_signal(struct unwind *u, const struct stack_view *view, taddr_t outer_sp)
{
	struct frame frame;

	if (u)
		unwind_recheck(u);
	start_frame(view, &frame);
	for (size_t i = 0; u && i < MAX_FRAMES_TO_SIGNAL; i++) {
		uint8_t dwarf_sp = u->rules.arch->dwarf_sp;
		taddr_t sp = frame.regs.reg[dwarf_sp];
		int end = step(u, view, &frame);
		if (end >= 0)
			return false;
		/* An alternate stack may be anywhere: compare with the interrupted frame. */
		if (end == STEP_SIGNAL && frame.regs.reg[dwarf_sp] < outer_sp)
			return true;
		if (end == STEP_OUT && sp < outer_sp && frame.regs.reg[dwarf_sp] >= outer_sp)
			return false;
	}
	return false;
}

bool unwind_leaves(struct unwind *u, const struct stack_view *view, taddr_t low, taddr_t high)
{
	struct frame frame;
	int end = STEP_OUT;

	if (!u)
		return false;
	unwind_recheck(u);
	u->has_guessed = false;
	start_frame(view, &frame);
	for (size_t i = 0; i < MAX_FRAMES_TO_SIGNAL && end < 0 && !u->has_guessed; i++) {
		taddr_t sp = frame.regs.reg[u->rules.arch->dwarf_sp];

		if (sp < low || sp > high)
			return true;
		end = step(u, view, &frame);
	}
	return false;
}

void unwind_forget(struct unwind *u, taddr_t start, taddr_t end)
{
	rules_forget(&u->rules, start, end);
	libunwind_free(u->libunwind);
	u->libunwind = NULL;
}

const struct unwind_rule_table *unwind_rules(const struct unwind *u)
{
	return &u->rules.table;
}

void unwind_set_memory(struct unwind *u, struct unwind_rule *memory, uint32_t bits,
		       void (*on_full)(void *ctx), void *ctx)
{
	rules_set_memory(&u->rules, memory, bits);
	u->rules.on_full = on_full;
	u->rules.on_full_ctx = ctx;
}

bool unwind_has_switch(const struct unwind *u)
{
	return u->rules.has_switch;
}

bool unwind_framed(const struct unwind *u, taddr_t *start_out, uint64_t *size_out)
{
	if (!u->framed_size)
		return false;
	*start_out = u->framed;
	*size_out = u->framed_size;
	return true;
}

/* Whether nothing describes the frame of @pc, so that slow.c goes by the frame pointer. */
static bool is_undescribed(const struct unwind *u, taddr_t pc)
{
	const struct module *m = u->ops.module(u->ops.ctx, pc - 1);
	Dwarf_Frame *row = m && m->file ? cfi_find(m->file, pc - 1 - m->bias) : NULL;

	free(row);
	return !row;
}

bool unwind_confirm_framed(struct unwind *u, taddr_t pc, taddr_t caller)
{
	const struct stack_view nowhere = {0};
	const struct unwind_rule *known = rules_find(&u->rules, pc);
	struct unwind_rule rule;

	if (known && rule_is_framed(known))
		return true;
	bool is_guess = known ? known->kind == RULE_SLOW :
				rules_compile(&u->rules, pc, false, &rule);
	bool is_slow = (known ? known : &rule)->kind == RULE_SLOW && is_undescribed(u, pc);

	if ((is_slow || (!known && rule_is_framed(&rule))) && !unwind_is_end(caller) &&
	    ((!is_guess && !is_slow) || slow_is_return_address(&u->ops, &nowhere, caller))) {
		if (!known)
			rules_enter(&u->rules, &rule);
		u->stats.rules = u->rules.compiled;
		return true;
	}
	u->has_unframed = true;
	u->framed_size = 0;
	return false;
}

const struct unwind_rule *unwind_rule_get(struct unwind *u, taddr_t pc)
{
	const struct unwind_rule *known = rules_find(&u->rules, pc);

	if (known)
		return known;
	/*
	 * A guess is not entered: walks by known rules do not call frame_of_ours, and this may be
	 * an address at which an exception passes a stub. Without a stack a guess cannot be
	 * checked.
	 */
	if (rules_compile(&u->rules, pc, false, &u->rules.spare))
		u->rules.spare = (struct unwind_rule){.pc = pc, .kind = RULE_SLOW};
	return &u->rules.spare;
}

const struct unwind_stats *unwind_stats(const struct unwind *u)
{
	return &u->stats;
}

/* -- frames like those of stubs -- */

#define SEARCHED_MAX ((uint64_t)64 << 20) /* bytes of an object's code, for find_stub_epilogue */
#define SEARCHED_PART ((uint64_t)256 << 10) /* of these, that are read at a time */
/* of the part after it that are read as well: what precedes an epilogue, and the epilogue */
#define SEARCHED_BOTH (ARCH_MAX_CALL + (uint64_t)ARCH_MAX_INSN)

/*
 * Whether @rule describes the frame of a stub; *saved_out is the register that it restores, or
 * -1.
 */
static bool is_stub_frame(const struct unwind_rule *rule, int *saved_out)
{
	unsigned saved = rule->saved;

	if (rule->kind != RULE_SP || rule->cfa_offset != arch_native->stub_cfa_offset ||
	    unwind_return_slot(rule) != -1 || (saved & (saved - 1)))
		return false;
	int i = saved ? __builtin_ctz(saved) : -1;

	if (i >= 0 && rule->slot[i] != arch_native->stub_saved_slot)
		return false;
	*saved_out = i;
	return true;
}

taddr_t unwind_find_stub_row(struct unwind *u, taddr_t start, taddr_t end, int *saved_out)
{
	for (taddr_t pc = start + 1; pc < end; pc++) {
		if (is_stub_frame(unwind_rule_get(u, pc), saved_out))
			return pc;
	}
	return 0;
}

/* Whether a frame at @vaddr of @m, which pops register @popped and returns, is a stub's. */
static bool is_stub_epilogue(struct unwind *u, const struct module *m, uint64_t vaddr, int popped)
{
	int saved = -1;

	return is_stub_frame(unwind_rule_get(u, m->bias + vaddr), &saved) && saved == popped &&
	       personality_is_absent(m->file->elf, vaddr - 1);
}

/* The first one in @segment of the file of @m, in the part that begins @from bytes into it. */
static bool search_epilogue(struct unwind *u, const struct module *m,
			    const struct elf_segment *segment, uint64_t from,
			    struct stub_epilogue *out)
{
	uint64_t size = MIN(segment->filesz - from, SEARCHED_PART + SEARCHED_BOTH);
	uint64_t start = segment->vaddr + from;
	_cleanup_free_ uint8_t *code = elf_file_read(m->file, segment->offset + from, size);

	for (size_t at = ARCH_MAX_CALL; code && at < size; at++) {
		int popped = arch_pops_and_returns(code + at, size - at);
		if (popped < 0 || arch_ends_in_call(code + at - ARCH_MAX_CALL, ARCH_MAX_CALL) ||
		    !is_stub_epilogue(u, m, start + at, popped))
			continue;
		out->vaddr = start + at;
		out->popped = popped;
		return true;
	}
	return false;
}

/* The same in all code of the file, of which a part is read at a time. */
static void search_epilogues(struct unwind *u, const struct module *m, struct stub_epilogue *out)
{
	for (size_t i = 0; i < m->file->segment_count; i++) {
		const struct elf_segment *s = &m->file->segment[i];
		uint64_t size = s->is_exec ? MIN(s->filesz, SEARCHED_MAX) : 0;

		for (uint64_t at = 0; at < size; at += SEARCHED_PART)
			if (search_epilogue(u, m, s, at, out))
				return;
	}
}

taddr_t unwind_find_stub_epilogue(struct unwind *u, const struct module *m, int *saved_out)
{
	struct stub_epilogue *found = m->file ? cfi_stub_epilogue(m->file) : NULL;

	if (!found)
		return 0;
	if (!found->is_searched)
		search_epilogues(u, m, found);
	found->is_searched = true;
	if (!found->vaddr)
		return 0;
	*saved_out = found->popped;
	return m->bias + found->vaddr;
}
