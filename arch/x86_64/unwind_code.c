/*
 * Decodes x86-64 code for unwinding without CFI (musl, assembly, JIT).
 *
 * arch_scan_function follows the stack pointer from a function's entry: pushes,
 * subtractions, a frame pointer set up. It goes through the code once, in order,
 * and remembers at each forward branch what the stack looks like at its target;
 * that is enough for prologues, early returns and epilogues in the middle. After a return that no
 * branch jumps over, the next function begins. Targets of a jump table are unknown: where entries
 * are aligned, the function ends at what the linker has put before the next one, or where that
 * sets up its frame pointer.
 *
 * arch_scan_return goes the other way, from a return address to a return.
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <string.h>

#include "arch/unwind_code.h"
#include "arch/x86_64/insn_skim.h"
#include "arch/x86_64/values.h"

#define MAX_TARGETS 64
#define MAX_OUTERMOST 64 /* bytes from the outermost-frame mark to the call there */
#define MAX_SCAN 65536 /* maximum distance from a symbol, bytes */

/* The signal frame: struct ucontext at the stack pointer, its gregs 40 bytes in. */
const uint16_t arch_sigframe_offset[ARCH_DWARF_REGS] = {
	[0] = 144, [1] = 136, [2] = 152, [3] = 128,  /* rax rdx rcx rbx */
	[4] = 112, [5] = 104, [6] = 120, [7] = 160,  /* rsi rdi rbp rsp */
	[8] = 40,  [9] = 48,  [10] = 56, [11] = 64,  /* r8 - r11 */
	[12] = 72, [13] = 80, [14] = 88, [15] = 96,  /* r12 - r15 */
	[16] = 168,                                  /* rip */
};

bool arch_is_sigreturn(const uint8_t *code, size_t size)
{
	static const uint8_t trampoline[ARCH_SIGRETURN_SIZE] = {
		0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, /* mov $__NR_rt_sigreturn, %rax */
		0x0f, 0x05,                               /* syscall */
	};

	return size >= sizeof(trampoline) && memcmp(code, trampoline, sizeof(trampoline)) == 0;
}

/* Length of "ff /2", an indirect call, at @code; 0 if it is none. */
static size_t indirect_call_size(const uint8_t *code, size_t size)
{
	if (size < 2 || code[0] != 0xff || (code[1] >> 3 & 7) != 2)
		return 0;
	uint8_t mod = code[1] >> 6, rm = code[1] & 7;
	size_t length = 2 + (mod != 3 && rm == 4);
	if (mod == 1)
		return length + 1;
	if (mod == 2 || (mod == 0 && rm == 5))
		return length + 4;
	if (mod == 0 && rm == 4 && size > 2 && (code[2] & 7) == 5)
		return length + 4;
	return length;
}

bool arch_ends_in_call(const uint8_t *code, size_t size)
{
	if (size >= 5 && code[size - 5] == 0xe8)
		return true;
	for (size_t length = 2; length <= MIN(size, (size_t)ARCH_MAX_CALL); length++)
		if (indirect_call_size(code + size - length, length) == length)
			return true;
	return false;
}

int arch_pops_and_returns(const uint8_t *code, size_t size)
{
	/* pop of rbp, rbx, r12-r15; ret */
	static const uint8_t low[] = {0x5d, 0x5b}, high[] = {0x5c, 0x5d, 0x5e, 0x5f};

	for (size_t i = 0; i < ARRAY_SIZE(low) && size >= 2; i++)
		if (code[0] == low[i] && code[1] == 0xc3)
			return (int)i;
	for (size_t i = 0; i < ARRAY_SIZE(high) && size >= 3; i++)
		if (code[0] == 0x41 && code[1] == high[i] && code[2] == 0xc3)
			return (int)(i + ARRAY_SIZE(low));
	return -1;
}

#define ENTRY_ALIGN 16u
/* bytes to an entry that only its frame pointer shows: other code has some of these, too */
#define ENTRY_NEAR 8192u

/* "push %rbp; mov %rsp, %rbp", in both forms of the latter, perhaps after endbr64. */
static bool sets_up_fp(const uint8_t *code, size_t size)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t forms[][4] = {{0x55, 0x48, 0x89, 0xe5}, {0x55, 0x48, 0x8b, 0xec}};

	if (size >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0) {
		code += sizeof(endbr);
		size -= sizeof(endbr);
	}
	return size >= 4 && (memcmp(code, forms[0], 4) == 0 || memcmp(code, forms[1], 4) == 0);
}

/* One byte of 0xcc may be the end of an instruction. */
static bool is_filled_before(const uint8_t *code, size_t at)
{
	return at >= 2 && code[at - 1] == 0xcc && code[at - 2] == 0xcc && code[at] != 0xcc;
}

bool arch_find_entry(const uint8_t *code, size_t at, uint64_t vaddr, size_t *entry_out)
{
	size_t first = (size_t)(-vaddr % ENTRY_ALIGN);

	for (size_t i = at; i-- > first;) {
		i -= (i - first) % ENTRY_ALIGN;
		if ((at - i <= ENTRY_NEAR && sets_up_fp(code + i, at - i)) ||
		    is_filled_before(code, i)) {
			*entry_out = i;
			return true;
		}
	}
	return false;
}

/* The state of the stack at one point of a function. */
struct stack_state {
	int32_t depth;    /* CFA - rsp */
	int32_t fp_depth; /* CFA - rbp, 0 while rbp is not the frame pointer */
	uint8_t saved;
	/* where rbp was cleared without being saved, the ABI's mark of the outermost frame; or 0 */
	size_t outermost_at;
	int16_t slot[RULE_SAVED_REGS];
};

struct scan {
	struct stack_state now, body; /* after the prologue */
	struct {
		size_t at;
		struct stack_state state;
	} target[MAX_TARGETS];
	size_t target_count, furthest;
	bool is_one;  /* the code is one function */
	bool is_aligned; /* entries are multiples of ENTRY_ALIGN bytes from the code's start */
	bool has_table;  /* this function has a jump table, whose targets are unknown */
	bool may_share; /* its prologue may be elsewhere */
	bool has_returned,
		was_call; /* this function had a return; the last instruction was a call */
	bool was_trap; /* it was int3 */
	/* since the last jump or return nothing was put on the stack, or only rbp */
	bool is_fresh, has_pushed_fp;
	bool is_lost; /* the start or end of this function is unknown */
};

static const struct stack_state entry_state = {.depth = 8};

/* The index of @reg among the callee-saved registers, -1 if it is none. */
static int saved_index(ZydisRegister reg)
{
	/* as arch_native->dwarf_saved: rbp, rbx, r12 - r15 */
	switch (reg) {
	case ZYDIS_REGISTER_RBP: return 0;
	case ZYDIS_REGISTER_RBX: return 1;
	case ZYDIS_REGISTER_R12: return 2;
	case ZYDIS_REGISTER_R13: return 3;
	case ZYDIS_REGISTER_R14: return 4;
	case ZYDIS_REGISTER_R15: return 5;
	default: return -1;
	}
}

static void push_reg(struct stack_state *now, const ZydisDecodedOperand *operand)
{
	int i = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? saved_index(operand->reg.value) : -1;

	now->depth += 8;
	if (i < 0 || now->saved >> i & 1 || now->depth > INT16_MAX)
		return;
	now->saved |= (uint8_t)(1u << i);
	now->slot[i] = (int16_t)(-now->depth / 8);
}

static void pop_reg(struct stack_state *now, const ZydisDecodedOperand *operand)
{
	int i = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ? saved_index(operand->reg.value) : -1;

	if (i >= 0 && now->saved >> i & 1 && now->slot[i] == -now->depth / 8) {
		now->saved &= (uint8_t)~(1u << i);
		if (i == 0)
			now->fp_depth = 0;
	}
	now->depth -= 8;
}

/* The state after "lea/mov memory or register -> rsp"; false if unknown. */
static bool load_sp(struct stack_state *now, const ZydisDecodedOperand *from)
{
	int64_t disp = 0;
	ZydisRegister base = from->reg.value;

	if (from->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		if (from->mem.type != ZYDIS_MEMOP_TYPE_AGEN ||
		    from->mem.index != ZYDIS_REGISTER_NONE)
			return false;
		base = from->mem.base;
		disp = from->mem.disp.value;
	} else if (from->type != ZYDIS_OPERAND_TYPE_REGISTER) {
		return false;
	}
	if (base == ZYDIS_REGISTER_RSP)
		now->depth -= (int32_t)disp;
	else if (base == ZYDIS_REGISTER_RBP && now->fp_depth)
		now->depth = now->fp_depth - (int32_t)disp;
	else
		return false;
	return true;
}

/* An instruction that writes rsp explicitly. */
static bool write_sp(struct stack_state *now, const ZydisDecodedInstruction *insn,
		     const ZydisDecodedOperand *operand)
{
	bool is_immediate = operand[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_SUB:
		now->depth += is_immediate ? (int32_t)operand[1].imm.value.s : 0;
		return is_immediate || now->fp_depth; /* a variable array, addressed from rbp */
	case ZYDIS_MNEMONIC_ADD:
		now->depth -= is_immediate ? (int32_t)operand[1].imm.value.s : 0;
		return is_immediate || now->fp_depth;
	case ZYDIS_MNEMONIC_AND:
		return now->fp_depth || now->outermost_at;
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_MOV:
		return load_sp(now, &operand[1]) || now->outermost_at;
	default:
		return false;
	}
}

static bool clears(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_XOR &&
	       operand[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       (x86_64_is_register(&operand[0], ZYDIS_REGISTER_EBP) ||
		x86_64_is_register(&operand[0], ZYDIS_REGISTER_RBP)) &&
	       operand[0].reg.value == operand[1].reg.value;
}

/* @at: after the instruction. */
static bool follow(struct stack_state *now, const ZydisDecodedInstruction *insn,
		   const ZydisDecodedOperand *operand, size_t at)
{
	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		push_reg(now, &operand[0]);
		return true;
	case ZYDIS_MNEMONIC_POP:
		pop_reg(now, &operand[0]);
		return true;
	case ZYDIS_MNEMONIC_LEAVE:
		if (!now->fp_depth)
			return false;
		now->depth = now->fp_depth - 8;
		now->fp_depth = 0;
		now->saved &= (uint8_t)~1u;
		return true;
	default:
		break;
	}
	if (clears(insn, operand) && !(now->saved & 1))
		now->outermost_at = at;
	if (insn->operand_count_visible == 0 || operand[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return true;
	if (!(operand[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return true;
	if (operand[0].reg.value == ZYDIS_REGISTER_RSP)
		return write_sp(now, insn, operand);
	if (operand[0].reg.value == ZYDIS_REGISTER_RBP)
		now->fp_depth = insn->mnemonic == ZYDIS_MNEMONIC_MOV &&
					x86_64_is_register(&operand[1], ZYDIS_REGISTER_RSP) ?
					now->depth :
					0;
	return true;
}

/* Saves the state at the target of a direct branch, @to bytes after @next, if it is ahead. */
static void note_target(struct scan *s, bool is_jump, size_t next, int64_t to)
{
	size_t target = next + (size_t)to;

	if (to < 0)
		return;
	/*
	 * With nothing pushed a jump may be a tail call; if it is not, the following code has the
	 * same state.
	 */
	if (!s->is_one && is_jump && s->now.depth == 8)
		return;
	s->furthest = MAX(s->furthest, target);
	if (s->target_count == MAX_TARGETS)
		return;
	s->target[s->target_count].at = target;
	s->target[s->target_count++].state = s->now;
}

static void begin_function(struct scan *s)
{
	*s = (struct scan){
		.now = entry_state, .body = entry_state, .is_aligned = s->is_aligned};
}

/* The state after an instruction that does not continue: a branch may lead here. */
static void resume(struct scan *s, size_t at, bool is_return)
{
	s->is_fresh = true;
	s->has_pushed_fp = false;
	for (size_t i = 0; i < s->target_count; i++) {
		if (s->target[i].at == at) {
			s->now = s->target[i].state;
			s->has_returned |= is_return;
			return;
		}
	}
	if (s->is_one || s->has_table || s->furthest > at) {
		s->now = s->body;
		s->has_returned |= is_return;
	} else if (!s->is_lost || is_return) {
		begin_function(s);
	}
}

/* The instruction at @at follows; @may_end: it may still belong to the function before it. */
static void find_filling(struct scan *s, size_t at, bool may_end)
{
	if (s->is_aligned && s->was_trap && at % ENTRY_ALIGN == 0 && !may_end)
		begin_function(s);
	s->was_trap = false;
}

/* The same if @insn sets up a frame pointer where there is one: the second one of a function. */
static void find_second_fp(struct scan *s, const ZydisDecodedInstruction *insn,
			   const ZydisDecodedOperand *operand)
{
	bool is_mov = insn->mnemonic == ZYDIS_MNEMONIC_MOV &&
		      x86_64_is_register(&operand[0], ZYDIS_REGISTER_RBP) &&
		      x86_64_is_register(&operand[1], ZYDIS_REGISTER_RSP);

	if (s->is_aligned && is_mov && s->has_pushed_fp && s->body.fp_depth) {
		begin_function(s);
		push_reg(&s->now, &operand[0]);
	}
}

/* After @insn, which has changed the depth of the stack. */
static void note_depth(struct scan *s, const ZydisDecodedInstruction *insn,
		       const ZydisDecodedOperand *operand)
{
	s->has_pushed_fp = s->is_fresh && insn->mnemonic == ZYDIS_MNEMONIC_PUSH &&
			   x86_64_is_register(&operand[0], ZYDIS_REGISTER_RBP);
	s->is_fresh = false;
}

static bool is_end(const ZydisDecodedInstruction *insn)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_RET || insn->mnemonic == ZYDIS_MNEMONIC_JMP ||
	       insn->mnemonic == ZYDIS_MNEMONIC_HLT || insn->mnemonic == ZYDIS_MNEMONIC_UD2;
}

static int finish(const struct stack_state *state, size_t at, struct unwind_rule *rule_out)
{
	if (state->outermost_at && at - state->outermost_at > MAX_OUTERMOST)
		return -ENOTSUP;
	if (state->outermost_at) {
		rule_out->kind = RULE_END;
		return 0;
	}
	if (state->fp_depth < 0 || (!state->fp_depth && state->depth < 8))
		return -ENOTSUP;
	rule_out->kind = state->fp_depth ? RULE_FP : RULE_SP;
	rule_out->cfa_offset = state->fp_depth ? state->fp_depth : state->depth;
	rule_out->saved = state->saved;
	memcpy(rule_out->slot, state->slot, sizeof(rule_out->slot));
	return 0;
}

/* Applies an instruction that does not change the stack. False if it is not understood. */
static bool scan_skimmed(struct scan *s, const struct skim *insn, size_t at)
{
	size_t next = at + insn->length;

	find_filling(s, at, false);
	s->was_call = insn->kind == SKIM_CALL;
	if (s->may_share && s->was_call && s->now.depth == entry_state.depth)
		return false;
	if (insn->kind == SKIM_JCC || insn->kind == SKIM_JMP)
		note_target(s, insn->kind == SKIM_JMP, next, insn->to);
	if (insn->kind == SKIM_JMP)
		resume(s, next, false);
	return true;
}

/* A jump that is not direct: through a jump table, or with nothing pushed a tail call. */
static bool is_table_jump(const struct scan *s, const ZydisDecodedInstruction *insn,
			  const ZydisDecodedOperand *operand)
{
	return insn->mnemonic == ZYDIS_MNEMONIC_JMP &&
	       operand[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE && s->now.depth != 8;
}

/* Applies @insn at @at to the state. False if it is not understood. */
static bool scan_insn(struct scan *s, const ZydisDecodedInstruction *insn,
		      const ZydisDecodedOperand *operand, size_t at)
{
	bool is_jump = insn->mnemonic == ZYDIS_MNEMONIC_JMP, was_call = s->was_call;

	find_filling(s, at, insn->mnemonic == ZYDIS_MNEMONIC_INT3 ||
			    insn->mnemonic == ZYDIS_MNEMONIC_UD2);
	find_second_fp(s, insn, operand);
	int32_t before = s->now.depth;

	s->was_trap = insn->mnemonic == ZYDIS_MNEMONIC_INT3;
	s->was_call = insn->mnemonic == ZYDIS_MNEMONIC_CALL;
	if (s->may_share && s->was_call && before == entry_state.depth)
		return false;
	if ((insn->meta.category == ZYDIS_CATEGORY_COND_BR || is_jump) &&
	    operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		note_target(s, is_jump, at + insn->length, operand[0].imm.value.s);
	if (!follow(&s->now, insn, operand, at + insn->length) && !s->is_lost)
		return false;
	if (s->now.depth > before || (s->now.fp_depth && !s->body.fp_depth))
		s->body = s->now;
	if (s->now.depth != before)
		note_depth(s, insn, operand);
	if (is_table_jump(s, insn, operand) && !s->is_one) {
		s->has_table |= s->is_aligned && s->body.fp_depth;
		/* an unknown number of cases follows */
		if (!s->has_table)
			return s->is_lost;
	}
	/* A call that does not return (__stack_chk_fail), and padding: the end of a function. */
	if (is_end(insn) || (insn->mnemonic == ZYDIS_MNEMONIC_NOP && was_call && !s->is_one &&
			     s->furthest <= at && (s->has_returned || s->now.outermost_at)))
		resume(s, at + insn->length, insn->mnemonic == ZYDIS_MNEMONIC_RET);
	return true;
}

/*
 * Applies the instruction at @i of the @at bytes at @code. Returns its length; 0 if that is the
 * end, -ENOTSUP if it is not understood.
 */
static int scan_next(struct scan *s, const ZydisDecoder *decoder, const uint8_t *code, size_t i,
		     size_t at)
{
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	const struct skim skim = insn_skim(code + i, at - i);

	if (skim.kind != SKIM_NONE)
		return scan_skimmed(s, &skim, i) ? skim.length : -ENOTSUP;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code + i, at - i, &insn, operand))) {
		if (at - i < ARCH_MAX_INSN)
			return 0; /* the call itself, truncated by the return address minus 1 */
		return s->is_lost ? 1 : -ENOTSUP;
	}
	if (!scan_insn(s, &insn, operand, i)) {
		if (s->is_one)
			return -ENOTSUP;
		s->is_lost = true;
	}
	return insn.length;
}

int arch_scan_function(const uint8_t *code, size_t at, enum arch_scan how,
		       struct unwind_rule *rule_out)
{
	ZydisDecoder decoder;
	struct scan s = {.now = entry_state, .body = entry_state,
			 .is_one = how == ARCH_SCAN_ONE || how == ARCH_SCAN_GENERATED,
			 .may_share = how == ARCH_SCAN_GENERATED,
			 .is_aligned = how == ARCH_SCAN_ALIGNED,
			 .is_lost = how == ARCH_SCAN_UNSYNCED};
	int length;

	if (at > MAX_SCAN || !ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
							    ZYDIS_STACK_WIDTH_64)))
		return -ENOTSUP;
	for (size_t i = 0; i < at; i += (size_t)length) {
		length = scan_next(&s, &decoder, code, i, at);
		if (length < 0)
			return length;
		if (!length)
			break;
	}
	return s.is_lost ? -ENOTSUP : finish(&s.now, at, rule_out);
}

/* -- from a return address to a return -- */

#define MAX_FORKS 32  /* conditional branches that are not followed yet */
#define MAX_STEPS 2000

/* The state of the stack on the way to a return. */
struct unwinding {
	size_t at;
	bool is_fp;       /* up counts from rbp, else from rsp at the start */
	bool has_fp;      /* rbp still has the value that it had at the start */
	int64_t up;
	uint8_t restored; /* callee-saved registers */
	int64_t from[RULE_SAVED_REGS]; /* where they were saved, counted like up */
};

struct return_scan {
	struct unwinding now, fork[MAX_FORKS];
	size_t forks;
	uint32_t targets; /* direct jumps that were followed */
	/* at a jump out of the code, after it has restored something: to another function */
	struct unwinding left;
	bool has_left;
	bool has_frame; /* it uses variables below its frame pointer */
};

enum way { WAY_ON, WAY_RETURN, WAY_DEAD };

/* Register @operand gets the word at @from, or with @is_saved false another value. */
static void set_saved(struct unwinding *u, const ZydisDecodedOperand *operand, bool is_saved,
		      int64_t from)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
							       operand->reg.value);
	int i = saved_index(whole);

	if (i < 0)
		return;
	u->has_fp &= i != 0;
	u->restored &= (uint8_t)~(1u << i);
	if (is_saved)
		u->restored |= (uint8_t)(1u << i);
	u->from[i] = from;
}

/* Counts @up from rbp from now on. What was loaded before was probably no saved register. */
static bool use_fp(struct unwinding *u, int64_t up)
{
	if (!u->has_fp)
		return false;
	if (!u->is_fp)
		u->restored = 0;
	u->is_fp = true;
	u->up = up;
	return true;
}

/* Whether @operand, memory or the address of it, is a place of the stack: *at_out. */
static bool is_place(const struct unwinding *u, const ZydisDecodedOperand *operand, int64_t *at_out)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY ||
	    operand->mem.index != ZYDIS_REGISTER_NONE || operand->mem.base != ZYDIS_REGISTER_RSP)
		return false;
	*at_out = u->up + operand->mem.disp.value;
	return true;
}

/* An instruction that writes rsp explicitly. */
static bool return_sp(struct unwinding *u, const ZydisDecodedInstruction *insn,
		      const ZydisDecodedOperand *operand)
{
	const ZydisDecodedOperand *from = &operand[1];
	bool is_immediate = from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_ADD:
		u->up += is_immediate ? from->imm.value.s : 0;
		return is_immediate;
	case ZYDIS_MNEMONIC_SUB:
		u->up -= is_immediate ? from->imm.value.s : 0;
		return is_immediate && u->up >= 0;
	case ZYDIS_MNEMONIC_LEA:
		if (from->mem.base == ZYDIS_REGISTER_RBP && from->mem.index == ZYDIS_REGISTER_NONE)
			return use_fp(u, from->mem.disp.value);
		return is_place(u, from, &u->up);
	case ZYDIS_MNEMONIC_MOV:
		return x86_64_is_register(from, ZYDIS_REGISTER_RBP) && use_fp(u, 0);
	default:
		return false;
	}
}

static enum way return_step(struct unwinding *u, const ZydisDecodedInstruction *insn,
			    const ZydisDecodedOperand *operand)
{
	int64_t at;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		return WAY_RETURN;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_ENDBR64: /* the entry of another function, as the following */
		return WAY_DEAD;
	case ZYDIS_MNEMONIC_PUSH:
		if (u->up <= 0 && operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    saved_index(operand[0].reg.value) >= 0)
			return WAY_DEAD;
		u->up -= 8;
		return WAY_ON;
	case ZYDIS_MNEMONIC_PUSHFQ:
		u->up -= 8;
		return WAY_ON;
	case ZYDIS_MNEMONIC_POP:
		if (operand[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
			set_saved(u, &operand[0], true, u->up);
		u->up += 8;
		if (u->is_fp && u->up == 8 && x86_64_is_register(&operand[0], ZYDIS_REGISTER_RBP))
			return WAY_RETURN; /* V8 removes arguments before it returns */
		return x86_64_is_register(&operand[0], ZYDIS_REGISTER_RSP) ? WAY_DEAD : WAY_ON;
	case ZYDIS_MNEMONIC_POPFQ:
		u->up += 8;
		return WAY_ON;
	case ZYDIS_MNEMONIC_LEAVE:
		if (!use_fp(u, 8))
			return WAY_DEAD;
		u->restored |= 1u;
		u->from[0] = 0;
		return WAY_RETURN;
	default:
		break;
	}
	if (insn->operand_count_visible == 0 || operand[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    !(operand[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return WAY_ON;
	if (operand[0].reg.value == ZYDIS_REGISTER_RSP)
		return return_sp(u, insn, operand) ? WAY_ON : WAY_DEAD;
	bool is_load = insn->mnemonic == ZYDIS_MNEMONIC_MOV && operand[0].size == 64 &&
		       is_place(u, &operand[1], &at);
	set_saved(u, &operand[0], is_load, is_load ? at : 0);
	return WAY_ON;
}

/* A branch at the instruction before s->now.at: the state continues behind it or at its target. */
static enum way take_branch(struct return_scan *s, const ZydisDecodedInstruction *insn,
			    const ZydisDecodedOperand *operand, size_t size)
{
	bool is_jump = insn->mnemonic == ZYDIS_MNEMONIC_JMP;
	int64_t to = operand[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			     (int64_t)s->now.at + operand[0].imm.value.s : -1;
	bool is_inside = to >= 0 && to < (int64_t)size;

	/* not after an argument was removed: then the stack is not aligned */
	if (is_jump && !is_inside && !s->has_left && (s->now.up > 0 || s->now.restored) &&
	    s->now.up % 16 == 8) {
		s->left = s->now;
		s->has_left = true;
	}
	if (is_jump && (!is_inside || ++s->targets > MAX_FORKS))
		return WAY_DEAD;
	if (is_jump) {
		s->now.at = (size_t)to;
	} else if (is_inside && s->forks < MAX_FORKS) {
		s->fork[s->forks] = s->now;
		s->fork[s->forks++].at = (size_t)to;
	}
	return WAY_ON;
}

/* Whether @insn uses a word below the frame pointer. */
static bool uses_frame(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand)
{
	for (unsigned i = 0; i < insn->operand_count_visible; i++) {
		const ZydisDecodedOperand *o = &operand[i];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY && o->mem.base == ZYDIS_REGISTER_RBP &&
		    o->mem.index == ZYDIS_REGISTER_NONE && o->mem.disp.value < 0 &&
		    o->mem.disp.value > INT16_MIN)
			return true;
	}
	return false;
}

static int frame_rule(struct unwind_rule *rule_out)
{
	rule_out->kind = RULE_FP;
	rule_out->cfa_offset = 16;
	rule_out->saved = 1;
	rule_out->slot[0] = -2;
	return 0;
}

static int return_rule(const struct unwinding *u, struct unwind_rule *rule_out)
{
	int64_t cfa = u->up + 8;
	struct unwind_rule rule = *rule_out;

	/* no code has called anything without a frame, if it aligns the stack for that */
	if (cfa < 8 || cfa > INT32_MAX || (cfa == 8 && !u->is_fp))
		return -ENOTSUP;
	rule.kind = u->is_fp ? RULE_FP : RULE_SP;
	rule.cfa_offset = (int32_t)cfa;
	rule.saved = 0;
	for (unsigned i = 0; i < RULE_SAVED_REGS; i++) {
		int64_t slot = (u->from[i] - cfa) / 8;
		if (!(u->restored >> i & 1) || (u->from[i] - cfa) % 8 != 0 || slot < INT16_MIN ||
		    slot >= 0)
			continue;
		rule.saved |= (uint8_t)(1u << i);
		rule.slot[i] = (int16_t)slot;
	}
	*rule_out = rule;
	return 0;
}

int arch_scan_return(const uint8_t *code, size_t size, size_t at, struct unwind_rule *rule_out)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	struct return_scan s = {.now = {.at = at, .has_fp = true}};

	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return -ENOTSUP;
	for (unsigned steps = 0; steps < MAX_STEPS; steps++) {
		struct unwinding *u = &s.now;
		enum way way = WAY_DEAD;

		if (u->at < size &&
		    ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + u->at, size - u->at,
							&insn, operand))) {
			u->at += insn.length;
			s.has_frame |= u->has_fp && uses_frame(&insn, operand);
			if (insn.meta.category == ZYDIS_CATEGORY_COND_BR ||
			    insn.mnemonic == ZYDIS_MNEMONIC_JMP)
				way = take_branch(&s, &insn, operand, size);
			else
				way = return_step(u, &insn, operand);
		}
		if (way == WAY_RETURN)
			return return_rule(u, rule_out);
		if (way == WAY_DEAD && !s.forks)
			break;
		if (way == WAY_DEAD)
			s.now = s.fork[--s.forks];
	}
	if (s.has_frame)
		return frame_rule(rule_out);
	return s.has_left ? return_rule(&s.left, rule_out) : -ENOTSUP;
}
