/*
 * Moves the first instructions of a function to another place.
 *
 * Only instructions on a short list are moved, those that compilers put at the beginning of
 * allocator functions; anything else is rejected. Three kinds have to be changed:
 *
 *	relative branches     rewritten with a 32-bit distance
 *	rip-relative operands their distance is corrected
 *	calls                 become "push the original return address; jump", so
 *	                      that no address of the moved code is ever on a
 *	                      stack, where a C++ exception would look for its CFI
 *
 * An instruction after which the code does not continue (jmp, call, ret) must be the last one.
 */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <string.h>

#include "arch/x86_64/x86_64.h"

enum insn_class {
	INSN_UNKNOWN,
	INSN_PLAIN,
	INSN_JCC,
	INSN_JMP,
	INSN_CALL,
	INSN_RET,
	INSN_JMP_INDIRECT,
	INSN_CALL_INDIRECT,
};

struct insn {
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	const uint8_t *bytes;
	taddr_t at;
};

static bool decode(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size, taddr_t at,
		   struct insn *insn)
{
	insn->bytes = bytes;
	insn->at = at;
	return ZYAN_SUCCESS(
		ZydisDecoderDecodeFull(decoder, bytes, size, &insn->decoded, insn->operand));
}

static void init_decoder(ZydisDecoder *decoder)
{
	ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

/* Instructions that are position-independent except for a rip-relative operand. */
static bool is_plain(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_INC:
	case ZYDIS_MNEMONIC_DEC:
	case ZYDIS_MNEMONIC_NEG:
	case ZYDIS_MNEMONIC_NOT:
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHR:
	case ZYDIS_MNEMONIC_SAR:
	case ZYDIS_MNEMONIC_MUL:
	case ZYDIS_MNEMONIC_IMUL:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_CDQ:
	case ZYDIS_MNEMONIC_CQO:
	case ZYDIS_MNEMONIC_CDQE:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_CMOVZ:
	case ZYDIS_MNEMONIC_CMOVNZ:
	case ZYDIS_MNEMONIC_CMOVB:
	case ZYDIS_MNEMONIC_CMOVNB:
	case ZYDIS_MNEMONIC_CMOVBE:
	case ZYDIS_MNEMONIC_CMOVNBE:
	case ZYDIS_MNEMONIC_SETZ:
	case ZYDIS_MNEMONIC_SETNZ:
	case ZYDIS_MNEMONIC_SETO:
	case ZYDIS_MNEMONIC_SETB:
	case ZYDIS_MNEMONIC_SETNB:
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
		return true;
	default:
		return false;
	}
}

/*
 * Those that are moved from the inside of a function alone: what the code after a call begins with,
 * besides. At a function's entry a pop would take the return address.
 */
static bool is_plain_inside(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_CVTSI2SD:
	case ZYDIS_MNEMONIC_CVTSI2SS:
	case ZYDIS_MNEMONIC_CVTSS2SD:
	case ZYDIS_MNEMONIC_CVTSD2SS:
	case ZYDIS_MNEMONIC_CVTTSD2SI:
	case ZYDIS_MNEMONIC_CVTTSS2SI:
	case ZYDIS_MNEMONIC_COMISD:
	case ZYDIS_MNEMONIC_COMISS:
	case ZYDIS_MNEMONIC_UCOMISD:
	case ZYDIS_MNEMONIC_UCOMISS:
	case ZYDIS_MNEMONIC_ADDSD:
	case ZYDIS_MNEMONIC_SUBSD:
	case ZYDIS_MNEMONIC_MULSD:
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_CWDE:
	case ZYDIS_MNEMONIC_BT:
	case ZYDIS_MNEMONIC_BSWAP:
	case ZYDIS_MNEMONIC_ROL:
	case ZYDIS_MNEMONIC_ROR:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_SETNBE:
	case ZYDIS_MNEMONIC_SETBE:
	case ZYDIS_MNEMONIC_SETL:
	case ZYDIS_MNEMONIC_SETNL:
	case ZYDIS_MNEMONIC_SETLE:
	case ZYDIS_MNEMONIC_SETNLE:
	case ZYDIS_MNEMONIC_SETS:
	case ZYDIS_MNEMONIC_SETNS:
	case ZYDIS_MNEMONIC_CMOVS:
	case ZYDIS_MNEMONIC_CMOVNS:
	case ZYDIS_MNEMONIC_CMOVL:
	case ZYDIS_MNEMONIC_CMOVNL:
	case ZYDIS_MNEMONIC_CMOVLE:
	case ZYDIS_MNEMONIC_CMOVNLE:
		return true;
	default:
		return false;
	}
}

static bool has_rip_operand(const struct insn *insn)
{
	for (size_t i = 0; i < insn->decoded.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->operand[i];
		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RIP)
			return true;
	}
	return false;
}

static enum insn_class classify_branch(const struct insn *insn)
{
	const ZydisDecodedInstruction *d = &insn->decoded;
	bool is_relative = d->raw.imm[0].is_relative;
	bool is_near = d->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR;

	if (d->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return INSN_UNKNOWN;
	if (d->mnemonic == ZYDIS_MNEMONIC_RET)
		return d->length <= 2 ? INSN_RET : INSN_UNKNOWN; /* ret or rep ret, not ret n */
	if (d->mnemonic == ZYDIS_MNEMONIC_JMP)
		return is_relative ? INSN_JMP : is_near ? INSN_JMP_INDIRECT : INSN_UNKNOWN;
	if (d->mnemonic == ZYDIS_MNEMONIC_CALL && is_relative)
		return INSN_CALL;
	if (d->mnemonic == ZYDIS_MNEMONIC_CALL)
		return is_near && has_rip_operand(insn) ? INSN_CALL_INDIRECT : INSN_UNKNOWN;
	if (d->meta.category != ZYDIS_CATEGORY_COND_BR || !is_relative)
		return INSN_UNKNOWN;
	/* Only jcc: loop, jrcxz and xbegin have no form with a 32-bit distance. */
	if (d->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT)
		return (d->opcode & 0xf0) == 0x70 ? INSN_JCC : INSN_UNKNOWN;
	return d->opcode_map == ZYDIS_OPCODE_MAP_0F && (d->opcode & 0xf0) == 0x80 ? INSN_JCC :
										    INSN_UNKNOWN;
}

static enum insn_class classify(const struct insn *insn, bool is_inside)
{
	if (insn->decoded.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE)
		return INSN_UNKNOWN;
	if (is_plain(insn->decoded.mnemonic) ||
	    (is_inside && is_plain_inside(insn->decoded.mnemonic)))
		return INSN_PLAIN;
	return classify_branch(insn);
}

static taddr_t branch_target(const struct insn *insn)
{
	return insn->at + insn->decoded.length + (uint64_t)insn->decoded.raw.imm[0].value.s;
}

static bool fits_rel32(int64_t distance)
{
	return distance == (int32_t)distance;
}

int x86_64_branch(uint8_t opcode, taddr_t at, taddr_t target, uint8_t *out)
{
	int64_t distance = (int64_t)(target - (at + X86_JUMP_SIZE));
	int32_t rel = (int32_t)distance;

	if (!fits_rel32(distance))
		return -ERANGE;
	out[0] = opcode;
	memcpy(out + 1, &rel, sizeof(rel));
	return 0;
}

static int refuse(struct arch_move *m, const char *why)
{
	m->why = why;
	return -ENOTSUP;
}

static int emit(struct arch_move *m, const void *bytes, size_t size)
{
	if (size > m->out_size - m->size)
		return refuse(m, "the moved code does not fit into its place");
	memcpy(m->out + m->size, bytes, size);
	m->size += size;
	return 0;
}

static int emit_branch(struct arch_move *m, uint8_t opcode, taddr_t target)
{
	uint8_t bytes[X86_JUMP_SIZE];

	if (x86_64_branch(opcode, m->to + m->size, target, bytes))
		return refuse(m, "a branch target is out of reach");
	return emit(m, bytes, sizeof(bytes));
}

/* 0f 8x rel32: a prefix byte, then laid out as a jump that is one byte later. */
static int emit_jcc(struct arch_move *m, const struct insn *insn)
{
	uint8_t bytes[1 + X86_JUMP_SIZE] = { 0x0f };
	uint8_t opcode = 0x80 | (insn->decoded.opcode & 0x0f);

	if (x86_64_branch(opcode, m->to + m->size + 1, branch_target(insn), bytes + 1))
		return refuse(m, "a branch target is out of reach");
	return emit(m, bytes, sizeof(bytes));
}

/*
 * Copies an instruction and adjusts a rip-relative displacement to refer to the same address from
 * the new place. @modrm_xor turns a call into a jump.
 */
static int emit_copy(struct arch_move *m, const struct insn *insn, uint8_t modrm_xor)
{
	const ZydisDecodedInstruction *d = &insn->decoded;
	uint8_t bytes[ARCH_MAX_INSN];

	memcpy(bytes, insn->bytes, d->length);
	if (modrm_xor)
		bytes[d->raw.modrm.offset] ^= modrm_xor;
	if (has_rip_operand(insn)) {
		int64_t distance = d->raw.disp.value + (int64_t)(insn->at - (m->to + m->size));
		int32_t disp = (int32_t)distance;
		if (d->raw.disp.size != 32 || !fits_rel32(distance))
			return refuse(m, "a rip-relative operand is out of reach");
		memcpy(bytes + d->raw.disp.offset, &disp, sizeof(disp));
	}
	return emit(m, bytes, d->length);
}

/*
 * push *(the constant after the jump); jump to the
 * callee; the constant: the original return address.
 */
static int emit_call(struct arch_move *m, const struct insn *insn, bool is_indirect)
{
	uint8_t push[6] = { 0xff, 0x35 };
	int32_t distance = is_indirect ? insn->decoded.length : X86_JUMP_SIZE;
	uint64_t return_address = insn->at + insn->decoded.length;
	int err;

	if (m->refuse_call)
		return refuse(m, "the first bytes contain a call");
	memcpy(push + 2, &distance, sizeof(distance));
	err = emit(m, push, sizeof(push));
	if (!err) /* ff /2 is call, ff /4 is jmp: bits 3-5 of modrm from 010 to 100 */
		err = is_indirect ? emit_copy(m, insn, 0x30) :
				    emit_branch(m, 0xe9, branch_target(insn));
	if (!err)
		err = emit(m, &return_address, sizeof(return_address));
	m->pushes_return = true;
	return err;
}

static int emit_insn(struct arch_move *m, const struct insn *insn, bool *is_last)
{
	*is_last = true;
	switch (classify(insn, m->is_inside)) {
	case INSN_PLAIN:
		*is_last = false;
		return emit_copy(m, insn, 0);
	case INSN_JCC:
		*is_last = false;
		return emit_jcc(m, insn);
	case INSN_JMP:
		return emit_branch(m, 0xe9, branch_target(insn));
	case INSN_CALL:
		return emit_call(m, insn, false);
	case INSN_CALL_INDIRECT:
		return emit_call(m, insn, true);
	case INSN_RET:
	case INSN_JMP_INDIRECT:
		return emit_copy(m, insn, 0);
	default:
		return refuse(m, "an instruction that is not known to be movable");
	}
}

bool x86_64_is_entered(const uint8_t *code, size_t code_size, taddr_t at, taddr_t start,
		       size_t size)
{
	ZydisDecoder decoder;
	struct insn insn;

	init_decoder(&decoder);
	for (size_t i = 0; i < code_size;) {
		if (!decode(&decoder, code + i, code_size - i, at + i, &insn)) {
			/*
			 * data between code: mistaking it for a branch only makes us more
			 * careful
			 */
			i++;
			continue;
		}
		if (insn.decoded.raw.imm[0].is_relative &&
		    branch_target(&insn) - start - 1 < size - 1)
			return true;
		i += insn.decoded.length;
	}
	return false;
}

/*
 * Whether a branch in the @size bytes of code at @at leads into the displaced bytes after their
 * first.
 */
static bool is_entered(const struct arch_move *m, const uint8_t *code, size_t size, taddr_t at)
{
	return x86_64_is_entered(code, size, at, m->from, m->moved);
}

int x86_64_relocate(struct arch_move *m)
{
	ZydisDecoder decoder;
	struct insn insn;
	bool is_last = false;

	init_decoder(&decoder);
	m->moved = m->size = 0;
	m->pushes_return = false;
	while (m->moved < m->min_bytes) {
		if (is_last)
			return refuse(m, "the function is shorter than a jump");
		if (!decode(&decoder, m->code + m->moved, m->code_size - m->moved,
			    m->from + m->moved, &insn))
			return refuse(m, "bytes that do not decode");
		int err = emit_insn(m, &insn, &is_last);
		if (err)
			return err;
		m->moved += insn.decoded.length;
	}
	if (is_entered(m, m->code, m->moved, m->from))
		return refuse(m, "the first instructions branch among themselves");
	return is_last ? 0 : emit_branch(m, 0xe9, m->from + m->moved);
}

/*
 * Chooses what to displace at the function that begins at @code: tries to make room for a jump,
 * after an endbr64 if there is one, in bytes that no branch of the function enters; otherwise
 * displaces the first instruction only. Sets m->from and the results. Given: code, code_size, from
 * = entry, to, out, out_size.
 */
static int displace(struct arch_move *m)
{
	static const uint8_t endbr64[X86_ENDBR64_SIZE] = { 0xf3, 0x0f, 0x1e, 0xfa };
	/* Best choice first: without displacing a call or the landing pad of indirect branches. */
	static const struct {
		bool is_after_endbr64, refuse_call;
		uint8_t min_bytes;
	} ways[] = {
		{ true, true, X86_JUMP_SIZE },  { false, true, X86_JUMP_SIZE },
		{ true, false, X86_JUMP_SIZE }, { false, false, X86_JUMP_SIZE },
		{ true, false, 1 },             { false, false, 1 },
	};
	const struct arch_move whole = *m;
	bool has_endbr64 = m->code_size >= sizeof(endbr64) &&
			   !memcmp(m->code, endbr64, sizeof(endbr64));

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		size_t skip = ways[i].is_after_endbr64 ? X86_ENDBR64_SIZE : 0;
		if (skip && !has_endbr64)
			continue;
		m->code = whole.code + skip;
		m->code_size = whole.code_size - skip;
		m->from = whole.from + skip;
		m->min_bytes = ways[i].min_bytes;
		m->refuse_call = ways[i].refuse_call;
		if (x86_64_relocate(m))
			continue;
		if (!is_entered(m, whole.code, whole.code_size, whole.from))
			return 0;
		m->why = "a branch enters the first bytes";
	}
	return -ENOTSUP;
}

/*
 * The stub: code through which a thread is sent instead of the function at whose entry it hit the
 * breakpoint.
 *
 *	call:  lea -8(%rsp), %rsp the ABI's alignment: with the call's 8 bytes it is as it was
 *	       call jump          runs the function, starting with its moved instructions
 *	trap:  int3               reports the return; the result is in rax
 *	       lea 8(%rsp), %rsp
 *	       ret                to the caller, whose return address stays in place
 *	jump:  moved instructions
 *	       jmp back           after the displaced bytes
 */

enum { STUB_CALL = 5, STUB_TRAP = 10, STUB_RETURN = 16, STUB_JUMP = 18 };

int x86_64_make_stub(struct arch_move *m, struct arch_stub *stub_out)
{
	taddr_t at = m->to;
	uint8_t *out = m->out;
	if (m->out_size < STUB_JUMP) {
		m->why = "the moved code does not fit into its place";
		return -ENOTSUP;
	}
	struct arch_move moved = *m;
	moved.to += STUB_JUMP;
	moved.out += STUB_JUMP;
	moved.out_size -= STUB_JUMP;
	int err = displace(&moved);
	if (err) {
		m->why = moved.why;
		return err;
	}
	static const uint8_t down[] = {0x48, 0x8d, 0x64, 0x24, 0xf8},
			     up[] = {0x48, 0x8d, 0x64, 0x24, 0x08};
	memcpy(out, down, sizeof(down));
	x86_64_branch(0xe8, at + STUB_CALL, at + STUB_JUMP, out + STUB_CALL);
	out[STUB_TRAP] = X86_TRAP;
	memcpy(out + STUB_TRAP + 1, up, sizeof(up));
	out[STUB_RETURN] = X86_RETURN;
	out[STUB_JUMP - 1] = X86_TRAP;
	*stub_out = (struct arch_stub){
		.call = at,
		.trap = at + STUB_TRAP,
		.jump = at + STUB_JUMP,
		.size = (uint32_t)(STUB_JUMP + moved.size),
		.return_below = 16,
		.trap_below = 8,
		.patch = moved.from,
		.moved = (uint32_t)moved.moved,
		.pushes_return = moved.pushes_return,
	};
	return 0;
}

size_t x86_64_make_syscall_stub(taddr_t from, taddr_t at, uint8_t *out, size_t out_size)
{
	static const uint8_t insn[] = {X86_SYSCALL};
	size_t n = sizeof(insn);

	if (out_size < n + X86_JUMP_SIZE)
		return 0;
	memcpy(out, insn, n);
	return x86_64_branch(0xe9, at + n, from + n, out + n) == 0 ? n + X86_JUMP_SIZE : 0;
}
