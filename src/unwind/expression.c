/*
 * Evaluates the operations of one CFA or register rule as libdw decoded them.
 *
 * libdw puts DW_OP_call_frame_cfa in front of register expressions itself, so
 * every evaluation starts with an empty stack. Operands are untrusted: the
 * stack and the number of steps are bounded.
 */
#include "unwind/expression.h"

#include <dwarf.h>

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

int expression_run(const Dwarf_Op *ops, size_t count, const struct expression_input *in,
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
