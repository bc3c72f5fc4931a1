/* The stack machine of DWARF (DWARF 5, section 2.5), as far as call frame information uses it. */
#include "unwind/frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "arch/unwind_code.h"
#include "base/elf_file.h"
#include "unwind/cfi.h"

struct expression_input {
	const struct stack_view *view;
	const struct frame *frame;
	uint64_t cfa; /* used by DW_OP_call_frame_cfa */
};

enum expression_kind {
	EXPRESSION_VALUE,    /* *value_out is the value (DW_OP_stack_value, a register) */
	/* *value_out is the address where the value is, or a plain result */
	EXPRESSION_LOCATION,
};

/*
 * Evaluates the operations of one CFA or register rule as libdw decoded them.
 *
 * libdw puts DW_OP_call_frame_cfa in front of register expressions itself, so
 * every evaluation starts with an empty stack. Operands are untrusted: the
 * stack and the number of steps are bounded.
 */

#define MAX_STACK 64
#define MAX_STEPS 1000

struct machine {
	const struct expression_input *in;
	uint64_t stack[MAX_STACK];
	size_t depth;
	bool is_value; /* DW_OP_stack_value or a register was seen */
};

static int push(struct machine *m, uint64_t value)
{
	if (m->depth == MAX_STACK)
		return -EINVAL;
	m->stack[m->depth++] = value;
	return 0;
}

static int push_register(struct machine *m, uint64_t number, uint64_t offset)
{
	const struct frame *frame = m->in->frame;

	if (number >= ARCH_DWARF_REGS || !(frame->known >> number & 1))
		return -EINVAL;
	return push(m, frame->regs.reg[number] + offset);
}

static int deref(struct machine *m, uint64_t size)
{
	uint64_t *top = &m->stack[m->depth - 1], word;

	if (m->depth == 0 || size == 0 || size > 8)
		return -EINVAL;
	if (frame_read_word(m->in->view, *top, &word) != 0)
		return -EFAULT;
	*top = size == 8 ? word : word & ((1ull << size * 8) - 1);
	return 0;
}

static int pick(struct machine *m, uint64_t index)
{
	return index < m->depth ? push(m, m->stack[m->depth - 1 - index]) : -EINVAL;
}

static int rotate(struct machine *m, size_t count)
{
	if (m->depth < count)
		return -EINVAL;
	uint64_t *bottom = &m->stack[m->depth - count], top = bottom[count - 1];
	memmove(bottom + 1, bottom, (count - 1) * sizeof(*bottom));
	bottom[0] = top;
	return 0;
}

static int binary(struct machine *m, uint8_t atom)
{
	if (m->depth < 2)
		return -EINVAL;
	uint64_t b = m->stack[--m->depth], *a = &m->stack[m->depth - 1];
	int64_t sa = (int64_t)*a, sb = (int64_t)b;

	switch (atom) {
	case DW_OP_and: *a &= b; break;
	case DW_OP_or: *a |= b; break;
	case DW_OP_xor: *a ^= b; break;
	case DW_OP_plus: *a += b; break;
	case DW_OP_minus: *a -= b; break;
	case DW_OP_mul: *a *= b; break;
	case DW_OP_div:
		if (b == 0)
			return -EINVAL;
		*a = sb == -1 ? 0 - *a :
				(uint64_t)(sa / sb); /* the smallest number cannot be negated */
		break;
	case DW_OP_mod:
		if (b == 0)
			return -EINVAL;
		*a %= b;
		break;
	case DW_OP_shl: *a = b < 64 ? *a << b : 0; break;
	case DW_OP_shr: *a = b < 64 ? *a >> b : 0; break;
	case DW_OP_shra: *a = (uint64_t)(sa >> (b < 64 ? b : 63)); break;
	case DW_OP_eq: *a = sa == sb; break;
	case DW_OP_ne: *a = sa != sb; break;
	case DW_OP_lt: *a = sa < sb; break;
	case DW_OP_le: *a = sa <= sb; break;
	case DW_OP_gt: *a = sa > sb; break;
	case DW_OP_ge: *a = sa >= sb; break;
	default: return -EINVAL;
	}
	return 0;
}

static int unary(struct machine *m, const Dwarf_Op *op)
{
	uint64_t *top = &m->stack[m->depth - 1];

	if (m->depth == 0)
		return -EINVAL;
	switch (op->atom) {
	case DW_OP_abs: *top = (int64_t)*top < 0 ? 0 - *top : *top; break;
	case DW_OP_neg: *top = 0 - *top; break;
	case DW_OP_not: *top = ~*top; break;
	case DW_OP_plus_uconst: *top += op->number; break;
	case DW_OP_drop: m->depth--; break;
	default: return -EINVAL;
	}
	return 0;
}

static int step(struct machine *m, const Dwarf_Op *op)
{
	uint8_t atom = op->atom;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return push(m, atom - DW_OP_lit0);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return push_register(m, atom - DW_OP_breg0, op->number);
	if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		m->is_value = true;
		return push_register(m, atom - DW_OP_reg0, 0);
	}
	switch (atom) {
	case DW_OP_nop: return 0;
	case DW_OP_addr:
	case DW_OP_const1u: case DW_OP_const1s: case DW_OP_const2u: case DW_OP_const2s:
	case DW_OP_const4u: case DW_OP_const4s: case DW_OP_const8u: case DW_OP_const8s:
	case DW_OP_constu: case DW_OP_consts: return push(m, op->number);
	case DW_OP_regx: m->is_value = true; return push_register(m, op->number, 0);
	case DW_OP_bregx: return push_register(m, op->number, op->number2);
	case DW_OP_call_frame_cfa: return push(m, m->in->cfa);
	case DW_OP_deref: return deref(m, 8);
	case DW_OP_deref_size: return deref(m, op->number);
	case DW_OP_dup: return pick(m, 0);
	case DW_OP_over: return pick(m, 1);
	case DW_OP_pick: return pick(m, op->number);
	case DW_OP_swap: return rotate(m, 2);
	case DW_OP_rot: return rotate(m, 3);
	case DW_OP_stack_value: m->is_value = true; return 0;
	case DW_OP_abs: case DW_OP_neg: case DW_OP_not: case DW_OP_plus_uconst:
	case DW_OP_drop: return unary(m, op);
	default: return binary(m, atom);
	}
}

/*
 * The index of the operation that the branch at @i leads to; branches count bytes from the next
 * operation.
 */
static int branch(const Dwarf_Op *ops, size_t count, size_t i, size_t *next_out)
{
	uint64_t target = ops[i].offset + 3 + ops[i].number;

	for (size_t j = 0; j < count; j++) {
		if (ops[j].offset == target) {
			*next_out = j;
			return 0;
		}
	}
	return -EINVAL;
}

/*
 * Runs the @count operations at @ops. Returns 0, -EFAULT if memory could not be read, -EINVAL for
 * an unknown register or operation, stack under- or overflow, or too many steps.
 */
static int expression_run(const Dwarf_Op *ops, size_t count, const struct expression_input *in,
			  enum expression_kind *kind_out, uint64_t *value_out)
{
	struct machine m = {.in = in};
	size_t steps = 0, next;

	for (size_t i = 0; i < count; i = next) {
		bool is_branch = ops[i].atom == DW_OP_skip;
		int ret = 0;
		if (++steps > MAX_STEPS)
			return -EINVAL;
		next = i + 1;
		if (ops[i].atom == DW_OP_bra) {
			if (m.depth == 0)
				return -EINVAL;
			is_branch = m.stack[--m.depth] != 0;
		} else if (ops[i].atom != DW_OP_skip) {
			ret = step(&m, &ops[i]);
		}
		if (is_branch)
			ret = branch(ops, count, i, &next);
		if (ret != 0)
			return ret;
	}
	if (m.depth == 0)
		return -EINVAL;
	*kind_out = m.is_value ? EXPRESSION_VALUE : EXPRESSION_LOCATION;
	*value_out = m.stack[m.depth - 1];
	return 0;
}

/*
 * Steps outwards with all registers, for frames that a 32-byte rule cannot describe. Tries in this
 * order: the CFI row with its expressions (realigned stacks, PLT, and glibc's signal trampoline,
 * whose row restores every register); a signal trampoline without CFI (musl), recognised by its
 * code; the frame pointer, if it points up the stack to a return address that follows a call.
 *
 * After that unwind.c guesses, but only in generated code. doc/internals.md has the figures.
 */

#define MAX_FRAME_BYTES (64u << 20) /* a frame pointer further away than this is invalid */
#define MAX_GUESSED_BYTES (16u << 10) /* the same if it leads to a guess */

/* Computes one register of the caller. 0, -EFAULT, or -ENODATA if its rule cannot be evaluated. */
static int restore(Dwarf_Frame *row, int number, const struct expression_input *in,
		   struct frame *caller)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	enum expression_kind kind;
	uint64_t value;
	int ret;

	if (cfi_register(row, number, memory, &ops, &count) != 0)
		return -ENODATA;
	if (count == 0) {
		caller->regs.reg[number] = in->frame->regs.reg[number];
		if (!ops)
			caller->known |= in->frame->known & UINT64_C(1) << number;
		return 0;
	}
	ret = expression_run(ops, count, in, &kind, &value);
	if (ret == 0 && kind == EXPRESSION_LOCATION)
		ret = frame_read_word(in->view, value, &value);
	if (ret != 0)
		return ret == -EFAULT ? ret : -ENODATA;
	caller->regs.reg[number] = value;
	caller->known |= UINT64_C(1) << number;
	return 0;
}

static int step_row(const struct arch *arch, Dwarf_Frame *row, const struct stack_view *view,
		    struct frame *frame, bool *is_signal_out)
{
	struct expression_input in = {.view = view, .frame = frame};
	struct frame caller = {0};
	enum expression_kind kind;
	Dwarf_Op *ops, memory[3];
	size_t count;
	int ret, ra = dwarf_frame_info(row, NULL, NULL, &caller.is_exact);

	if (ra < 0 || ra >= ARCH_DWARF_REGS ||
	    cfi_register(row, ra, memory, &ops, &count) != 0)
		return -ENODATA;
	if (count == 0 && ops)
		return 1;
	if (dwarf_frame_cfa(row, &ops, &count) != 0 || count == 0)
		return -ENODATA;
	ret = expression_run(ops, count, &in, &kind, &in.cfa);
	if (ret != 0)
		return ret == -EFAULT ? ret : -ENODATA;
	for (int i = 0; i < ARCH_DWARF_REGS; i++) {
		ret = restore(row, i, &in, &caller);
		/* A lost scratch register is harmless; without pc or sp there is no caller. */
		if (ret != 0 && (i == ra || i == arch->dwarf_sp))
			return ret;
	}
	if (!(caller.known >> ra & 1) || !(caller.known >> arch->dwarf_sp & 1))
		return -ENODATA;
	caller.regs.reg[arch->dwarf_pc] = arch_return_address(caller.regs.reg[ra]);
	caller.known |= UINT64_C(1) << arch->dwarf_pc;
	*is_signal_out = caller.is_exact;
	*frame = caller;
	return 0;
}

/* Reads the code at @pc: from the file, which has no breakpoints of ptmem, or else from memory. */
static bool read_code(const struct unwind_ops *ops, const struct stack_view *view, taddr_t pc,
		      uint8_t *buf, size_t size)
{
	const struct module *module = ops->module(ops->ctx, pc);
	size_t available;

	if (module && module->file) {
		const uint8_t *code = cfi_code(module->file, pc - module->bias, size, &available);
		if (!code || available < size)
			return false;
		memcpy(buf, code, size);
		return true;
	}
	return view->read && view->read(view->read_ctx, pc, buf, size) == 0;
}

static bool is_trampoline(const struct unwind_ops *ops, const struct stack_view *view, taddr_t pc)
{
	uint8_t code[ARCH_SIGRETURN_SIZE];

	return read_code(ops, view, pc, code, sizeof(code)) &&
	       arch_is_sigreturn(code, sizeof(code));
}

bool slow_is_return_address(const struct unwind_ops *ops, const struct stack_view *view, taddr_t pc)
{
	uint8_t code[ARCH_MAX_CALL];

	if (pc < PAGE_SIZE_MIN)
		return unwind_is_end(pc);
	if (read_code(ops, view, pc - ARCH_MAX_CALL, code, ARCH_MAX_CALL) &&
	    arch_ends_in_call(code, ARCH_MAX_CALL))
		return true;
	return is_trampoline(ops, view, pc);
}

static int step_sigframe(const struct arch *arch, const struct stack_view *view,
			 struct frame *frame)
{
	struct frame caller = {.known = FRAME_KNOWS_ALL, .is_exact = true};
	taddr_t sp = frame->regs.reg[arch->dwarf_sp];

	for (int i = 0; i < ARCH_DWARF_REGS; i++)
		if (frame_read_word(view, sp + arch_sigframe_offset[i], &caller.regs.reg[i]) != 0)
			return -EFAULT;
	*frame = caller;
	return 0;
}

/* The caller of @frame if its frame pointer is one, at most @most bytes from the stack pointer. */
static int read_frame(const struct arch *arch, const struct stack_view *view,
		      const struct frame *frame, uint64_t most, struct frame *caller_out)
{
	taddr_t fp = frame->regs.reg[arch->dwarf_fp], sp = frame->regs.reg[arch->dwarf_sp];
	struct frame caller = {
		.known = UINT64_C(1) << arch->dwarf_pc | UINT64_C(1) << arch->dwarf_sp |
			 UINT64_C(1) << arch->dwarf_fp};

	if (!(frame->known >> arch->dwarf_fp & 1) || fp % 8 != 0 || fp < sp || fp - sp > most ||
	    frame_read_word(view, fp, &caller.regs.reg[arch->dwarf_fp]) != 0 ||
	    frame_read_word(view, fp + 8, &caller.regs.reg[arch->dwarf_pc]) != 0)
		return -ENODATA;
	caller.regs.reg[arch->dwarf_pc] = arch_return_address(caller.regs.reg[arch->dwarf_pc]);
	caller.regs.reg[arch->dwarf_sp] = fp + 16;
	*caller_out = caller;
	return 0;
}

static int step_frame_pointer(const struct arch *arch, const struct unwind_ops *ops,
			      const struct stack_view *view, struct frame *frame)
{
	struct frame caller;

	if (read_frame(arch, view, frame, MAX_FRAME_BYTES, &caller) != 0)
		return -ENODATA;
	taddr_t pc = caller.regs.reg[arch->dwarf_pc];
	if (!slow_is_return_address(ops, view, pc) ||
	    (unwind_is_end(pc) && caller.regs.reg[arch->dwarf_fp] != 0))
		return -ENODATA;
	*frame = caller;
	return 0;
}

int slow_guess(const struct arch *arch, const struct stack_view *view, const struct frame *frame,
	       struct frame *caller_out)
{
	return read_frame(arch, view, frame, MAX_GUESSED_BYTES, caller_out);
}

/* Steps by the CFI of @module; -ENOENT if it has none for the frame. */
static int step_cfi(const struct arch *arch, const struct module *module,
		    const struct stack_view *view, struct frame *frame, bool *is_signal_out)
{
	taddr_t lookup = frame_lookup_pc(arch, frame);
	Dwarf_Frame *row = module && module->file ? cfi_find(module->file, lookup - module->bias) :
						    NULL;
	int ret = row ? step_row(arch, row, view, frame, is_signal_out) : -ENOENT;

	free(row);
	return ret;
}

int slow_step_in(const struct arch *arch, const struct module *module,
		 const struct stack_view *view, struct frame *frame)
{
	bool is_signal = false;

	return step_cfi(arch, module, view, frame, &is_signal);
}

int slow_step(const struct arch *arch, const struct unwind_ops *ops, const struct stack_view *view,
	      struct frame *frame, enum slow_way *way_out)
{
	taddr_t pc = frame->regs.reg[arch->dwarf_pc];
	const struct module *module = ops->module(ops->ctx, frame_lookup_pc(arch, frame));
	bool is_signal = false;
	int ret = -ENOENT;

	/* a vdso's CFI without a column for the pc leads to the interrupted function's caller */
	if (arch->dwarf_return == arch->dwarf_pc || !is_trampoline(ops, view, pc))
		ret = step_cfi(arch, module, view, frame, &is_signal);

	if (ret != -ENOENT) {
		if (ret == 0)
			*way_out = is_signal ? SLOW_SIGNAL : SLOW_CFI;
		return ret;
	}
	if (is_trampoline(ops, view, pc)) {
		ret = step_sigframe(arch, view, frame);
		if (ret == 0)
			*way_out = SLOW_SIGNAL;
		return ret;
	}
	ret = step_frame_pointer(arch, ops, view, frame);
	if (ret == 0)
		*way_out = SLOW_FRAME_POINTER;
	return ret;
}
