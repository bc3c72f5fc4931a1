/*
 * Moves the first instruction of a function, and assembles the stub in its place. One instruction
 * is enough: a breakpoint and a branch have its size. Only the instructions of enum a64_kind refer
 * to their own address; they become a sequence with the same effect. That may use x16 and x17,
 * which any call may change on its way (AAPCS64, section 6.1.1), but not inside of a function.
 */
#include <errno.h>

#include "arch/aarch64/aarch64.h"

#define SCRATCH 16u /* x16 */

enum a64_kind a64_decode(uint32_t insn, taddr_t at, taddr_t *to_out)
{
	if ((insn & 0x7c000000u) == 0x14000000u) {
		*to_out = at + (taddr_t)(4 * a64_signed(insn, 0, 26));
		return insn >> 31 ? A64_IS_CALL : A64_IS_BRANCH;
	}
	if ((insn & 0xff000000u) == 0x54000000u || (insn & 0x7e000000u) == 0x34000000u) {
		*to_out = at + (taddr_t)(4 * a64_signed(insn, 5, 19));
		return A64_IS_CONDITION;
	}
	if ((insn & 0x7e000000u) == 0x36000000u) {
		*to_out = at + (taddr_t)(4 * a64_signed(insn, 5, 14));
		return A64_IS_CONDITION;
	}
	if ((insn & 0x1f000000u) == 0x10000000u) {
		int64_t distance = 4 * a64_signed(insn, 5, 19) + (insn >> 29 & 3);

		*to_out = insn >> 31 ? (at & ~(taddr_t)0xfff) + ((taddr_t)distance << 12) :
				       at + (taddr_t)distance;
		return A64_IS_ADDRESS;
	}
	if ((insn & 0x3b000000u) == 0x18000000u) {
		bool is_general = !(insn >> 26 & 1) && insn >> 30 != 3;

		*to_out = at + (taddr_t)(4 * a64_signed(insn, 5, 19));
		return is_general ? A64_IS_LOAD : A64_IS_UNKNOWN;
	}
	return insn >> 16 == 0 ? A64_IS_UNKNOWN : A64_OTHER; /* udf */
}

bool a64_branch(uint32_t insn, taddr_t at, taddr_t to, uint32_t *insn_out)
{
	int64_t distance = (int64_t)(to - at);

	if (distance % 4 != 0 || distance < -(1 << 27) || distance >= 1 << 27)
		return false;
	*insn_out = insn | ((uint32_t)(distance / 4) & 0x3ffffffu);
	return true;
}

static int refuse(struct arch_move *m, const char *why)
{
	m->why = why;
	return -ENOTSUP;
}

static int emit(struct arch_move *m, uint32_t insn)
{
	if (m->out_size - m->size < A64_SIZE)
		return refuse(m, "the moved code does not fit into its place");
	a64_store(m->out + m->size, insn);
	m->size += A64_SIZE;
	return 0;
}

/* movz, and movk for the other parts of @value. */
static int emit_constant(struct arch_move *m, uint32_t reg, uint64_t value)
{
	int err = emit(m, 0xd2800000u | (uint32_t)(value & 0xffff) << 5 | reg);

	for (unsigned part = 1; part < 4 && !err; part++) {
		uint32_t bits = value >> (16 * part) & 0xffff;

		if (bits)
			err = emit(m, 0xf2800000u | part << 21 | bits << 5 | reg);
	}
	return err;
}

/* A branch to @to, by a register if it is too far. */
static int emit_branch(struct arch_move *m, taddr_t to)
{
	uint32_t insn;

	if (a64_branch(A64_BRANCH, m->to + m->size, to, &insn))
		return emit(m, insn);
	if (m->is_inside)
		return refuse(m, "a branch that would be too far");
	int err = emit_constant(m, SCRATCH, to);

	return err ? err : emit(m, 0xd61f0000u | SCRATCH << 5); /* br */
}

/*
 * A conditional branch to @to:
 *
 *	condition, to the third instruction
 *	b next
 *	b to
 *
 * where `next` follows the moved instruction.
 */
static int emit_condition(struct arch_move *m, uint32_t insn, taddr_t to)
{
	bool tests_bit = (insn & 0x7e000000u) == 0x36000000u;
	uint32_t mask = tests_bit ? 0x3fffu << 5 : 0x7ffffu << 5, next;
	int err = emit(m, (insn & ~mask) | 2u << 5);

	if (!a64_branch(A64_BRANCH, m->to + m->size, m->from + A64_SIZE, &next))
		return refuse(m, "a branch that would be too far");
	if (!err)
		err = emit(m, next);
	return err ? err : emit_branch(m, to);
}

/* ldr, ldrsw or the 32-bit ldr of the word at @to. */
static int emit_load(struct arch_move *m, uint32_t insn, taddr_t to)
{
	static const uint32_t load[] = {0xb9400000u, 0xf9400000u, 0xb9800000u};
	uint32_t reg = insn & 31;
	int err = emit_constant(m, reg, to);

	if (reg == 31)
		return refuse(m, "a load that has no effect");
	return err ? err : emit(m, load[insn >> 30] | reg << 5 | reg);
}

static bool is_call_by_register(uint32_t insn)
{
	return (insn & 0xfefff800u) == 0xd63f0800u || /* blraa and relatives */
	       (insn & 0xfffffc1fu) == 0xd63f0000u;
}

static int emit_insn(struct arch_move *m, uint32_t insn, bool *is_last)
{
	taddr_t to = 0;
	int err;

	*is_last = false;
	switch (a64_decode(insn, m->from, &to)) {
	case A64_OTHER:
		if (is_call_by_register(insn) && m->refuse_call)
			return refuse(m, "a call");
		return is_call_by_register(insn) ? refuse(m, "a call by a register") :
						   emit(m, insn);
	case A64_IS_BRANCH:
		*is_last = true;
		return emit_branch(m, to);
	case A64_IS_CONDITION:
		return emit_condition(m, insn, to);
	case A64_IS_ADDRESS:
		return (insn & 31) == 31 ? emit(m, A64_NOP) : emit_constant(m, insn & 31, to);
	case A64_IS_LOAD:
		return emit_load(m, insn, to);
	case A64_IS_CALL:
		if (m->refuse_call)
			return refuse(m, "a call");
		*is_last = true;
		m->pushes_return = true;
		err = emit_constant(m, A64_LR, m->from + A64_SIZE);
		return err ? err : emit_branch(m, to);
	default:
		return refuse(m, "an instruction that is not known to be movable");
	}
}

int aarch64_relocate(struct arch_move *m)
{
	bool is_last;

	m->moved = m->size = 0;
	m->pushes_return = false;
	if (m->min_bytes > A64_SIZE)
		return refuse(m, "more than one instruction");
	if (m->code_size < A64_SIZE || m->from % A64_SIZE != 0)
		return refuse(m, "bytes that do not decode");
	int err = emit_insn(m, a64_load(m->code), &is_last);

	if (err)
		return err;
	m->moved = A64_SIZE;
	return is_last ? 0 : emit_branch(m, m->from + A64_SIZE);
}

bool aarch64_is_entered(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
			size_t size)
{
	for (size_t i = 0; i + A64_SIZE <= code_size; i += A64_SIZE) {
		taddr_t to;
		enum a64_kind kind = a64_decode(a64_load(code + i), at + i, &to);

		if (kind >= A64_IS_BRANCH && kind <= A64_IS_CONDITION && to - start - 1 < size - 1)
			return true;
	}
	return false;
}

/*
 * The stub: code through which a thread is sent instead of the function at whose entry it hit the
 * breakpoint.
 *
 *	call:  adr x16, trap
 *	       stp x16, x30, [sp, #-16]!   the return address, and a mark that ptmem looks for
 *	       bl jump                     runs the function, starting with its moved instruction
 *	trap:  brk #0                      reports the return; the result is in x0
 *	       ldr x30, [sp, #8]
 *	       add sp, sp, #16
 *	       ret                         to the caller
 *	jump:  moved instruction
 *	       b back                      after the displaced one
 *
 * Pages of stubs are not guarded (PROT_BTI), so a thread may be sent to `call` after an indirect
 * branch to the function. A function that signs its return address signs that of the stub's call.
 */
enum { STUB_TRAP = 12, STUB_JUMP = 28 };

int aarch64_make_stub(struct arch_move *m, struct arch_stub *stub_out)
{
	static const uint32_t code[] = {
		0x10000070u, /* adr x16, .+12 */
		0xa9bf7bf0u, /* stp x16, x30, [sp, #-16]! */
		0x94000005u, /* bl .+20 */
		A64_BRK,
		0xf94007feu, /* ldr x30, [sp, #8] */
		0x910043ffu, /* add sp, sp, #16 */
		A64_RET,
	};
	_Static_assert(sizeof(code) == STUB_JUMP, "the moved instruction follows");
	struct arch_move moved = *m;

	if (m->out_size < STUB_JUMP)
		return refuse(m, "the moved code does not fit into its place");
	moved.min_bytes = A64_SIZE;
	moved.refuse_call = false;
	moved.to += STUB_JUMP;
	moved.out += STUB_JUMP;
	moved.out_size -= STUB_JUMP;
	int err = aarch64_relocate(&moved);

	if (err)
		return refuse(m, moved.why);
	for (size_t i = 0; i < ARRAY_SIZE(code); i++)
		a64_store(m->out + A64_SIZE * i, code[i]);
	*stub_out = (struct arch_stub){
		.call = m->to,
		.trap = m->to + STUB_TRAP,
		.jump = m->to + STUB_JUMP,
		.size = (uint32_t)(STUB_JUMP + moved.size),
		.return_below = 16,
		.trap_below = 16,
		.patch = moved.from,
		.moved = (uint32_t)moved.moved,
		.pushes_return = moved.pushes_return,
	};
	return 0;
}

size_t aarch64_make_syscall_stub(taddr_t from, taddr_t at, uint8_t *out, size_t out_size)
{
	uint32_t back;

	if (out_size < 2 * A64_SIZE ||
	    !a64_branch(A64_BRANCH, at + A64_SIZE, from + A64_SIZE, &back))
		return 0;
	a64_store(out, A64_SVC);
	a64_store(out + A64_SIZE, back);
	return 2 * A64_SIZE;
}
