/*
 * Runs a filter on values of which some are unknown. A jump that depends on an unknown value goes
 * both ways. Jumps only go forward, so one pass over the program suffices: when it comes to an
 * instruction, all paths to it have been joined. What differs between these paths is unknown.
 *
 * In case of doubt the answer is no. The rules are those of seccomp_check_filter and
 * bpf_check_classic in the kernel.
 */
#include "tracee/inject/filter_eval.h"

#include <linux/seccomp.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"

_Static_assert(sizeof(struct seccomp_data) == FILTER_WORDS * sizeof(uint32_t), "all words");

/* The registers: scratch memory, accumulator, index. */
enum { REG_A = BPF_MEMWORDS, REG_X, REGISTERS };

/* The state before an instruction. */
struct state {
	bool is_reached;
	uint32_t known; /* bit N: value[N] */
	uint32_t value[REGISTERS];
};

struct operand {
	uint32_t value;
	bool is_known;
};

/* How an instruction leaves. */
enum outcome { OUTCOME_NEXT, OUTCOME_ALLOWED, OUTCOME_REFUSED };

static struct operand get(const struct state *s, unsigned reg)
{
	return (struct operand){s->value[reg], s->known >> reg & 1};
}

static enum outcome set(struct state *s, unsigned reg, struct operand from)
{
	s->value[reg] = from.is_known ? from.value : 0;
	s->known = (s->known & ~(1u << reg)) | (uint32_t)from.is_known << reg;
	return OUTCOME_NEXT;
}

static struct operand constant(uint32_t value)
{
	return (struct operand){value, true};
}

/* @to: a state of which the paths so far are known. */
static void join(struct state *to, const struct state *from)
{
	if (!to->is_reached) {
		*to = *from;
		return;
	}
	to->known &= from->known;
	for (unsigned i = 0; i < REGISTERS; i++) {
		if (to->value[i] != from->value[i])
			to->known &= ~(1u << i);
	}
}

static enum outcome load(struct state *s, const struct filter_input *input, uint32_t offset)
{
	uint32_t i = offset / sizeof(uint32_t);
	if (offset % sizeof(uint32_t) != 0 || i >= FILTER_WORDS)
		return OUTCOME_REFUSED;
	return set(s, REG_A, (struct operand){input->word[i], input->known >> i & 1});
}

static enum outcome compute(struct state *s, unsigned op, struct operand with)
{
	struct operand a = get(s, REG_A);
	uint32_t value = 0;
	bool is_known = a.is_known && with.is_known;
	switch (op) {
	case BPF_ADD: value = a.value + with.value; break;
	case BPF_SUB: value = a.value - with.value; break;
	case BPF_MUL: value = a.value * with.value; break;
	case BPF_AND: value = a.value & with.value; break;
	case BPF_OR: value = a.value | with.value; break;
	case BPF_XOR: value = a.value ^ with.value; break;
	case BPF_NEG: value = 0 - a.value; break;
	case BPF_LSH:
	case BPF_RSH:
		is_known &= with.value < 32;
		if (is_known)
			value = op == BPF_LSH ? a.value << with.value : a.value >> with.value;
		break;
	case BPF_DIV: /* the kernel ends the filter with 0, which kills, at a division by zero */
		if (!with.is_known || with.value == 0)
			return OUTCOME_REFUSED;
		value = a.value / with.value;
		break;
	default: return OUTCOME_REFUSED;
	}
	return set(s, REG_A, (struct operand){value, is_known});
}

/* The instructions that go on with the next one, or end the program. */
static enum outcome execute(struct state *s, const struct sock_filter *insn,
			    const struct filter_input *input)
{
	struct operand source =
		BPF_SRC(insn->code) == BPF_X ? get(s, REG_X) : constant(insn->k);
	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS: return load(s, input, insn->k);
	case BPF_LD | BPF_W | BPF_LEN: return set(s, REG_A, constant(sizeof(input->word)));
	case BPF_LDX | BPF_W | BPF_LEN: return set(s, REG_X, constant(sizeof(input->word)));
	case BPF_LD | BPF_IMM: return set(s, REG_A, constant(insn->k));
	case BPF_LDX | BPF_IMM: return set(s, REG_X, constant(insn->k));
	case BPF_MISC | BPF_TAX: return set(s, REG_X, get(s, REG_A));
	case BPF_MISC | BPF_TXA: return set(s, REG_A, get(s, REG_X));
	case BPF_RET | BPF_K:
		return (insn->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ALLOW ||
				       (insn->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_LOG
			       ? OUTCOME_ALLOWED
			       : OUTCOME_REFUSED;
	case BPF_LD | BPF_MEM:
	case BPF_LDX | BPF_MEM:
	case BPF_ST:
	case BPF_STX:
		if (insn->k >= BPF_MEMWORDS)
			return OUTCOME_REFUSED;
		if (BPF_CLASS(insn->code) == BPF_ST || BPF_CLASS(insn->code) == BPF_STX)
			return set(s, insn->k, get(s, insn->code == BPF_ST ? REG_A : REG_X));
		return set(s, insn->code == (BPF_LD | BPF_MEM) ? REG_A : REG_X, get(s, insn->k));
	default:
		return insn->code <= 0xff && BPF_CLASS(insn->code) == BPF_ALU
			       ? compute(s, BPF_OP(insn->code), source)
			       : OUTCOME_REFUSED;
	}
}

static bool compare(unsigned op, uint32_t a, uint32_t b)
{
	return op == BPF_JEQ ? a == b : op == BPF_JGT ? a > b : op == BPF_JGE ? a >= b : a & b;
}

/* Joins @s into the states at which the jump @code[@at] may arrive. False: it is not valid. */
static bool jump(struct state *states, const struct sock_filter *code, size_t at, size_t count)
{
	const struct sock_filter *insn = &code[at];
	const struct state *s = &states[at];
	unsigned op = BPF_OP(insn->code);
	struct operand a = get(s, REG_A),
		       b = BPF_SRC(insn->code) == BPF_X ? get(s, REG_X) : constant(insn->k);
	size_t left = count - at - 1;
	if (insn->code == (BPF_JMP | BPF_JA)) {
		if (insn->k >= left)
			return false;
		join(&states[at + 1 + insn->k], s);
		return true;
	}
	if (insn->code > 0xff || insn->jt >= left || insn->jf >= left ||
	    (op != BPF_JEQ && op != BPF_JGT && op != BPF_JGE && op != BPF_JSET))
		return false;
	bool is_known = a.is_known && b.is_known, is_true = compare(op, a.value, b.value);
	if (!is_known || is_true)
		join(&states[at + 1 + insn->jt], s);
	if (!is_known || !is_true)
		join(&states[at + 1 + insn->jf], s);
	return true;
}

bool filter_allows(const struct sock_filter *code, size_t count, const struct filter_input *input)
{
	if (count == 0 || count > BPF_MAXINSNS)
		return false;
	_cleanup_free_ struct state *states = xcalloc(count, sizeof(*states));
	states[0].is_reached = true;
	states[0].known = 1u << REG_A | 1u << REG_X; /* they are 0 */
	for (size_t i = 0; i < count; i++) {
		struct state *s = &states[i];
		if (!s->is_reached)
			continue;
		if (BPF_CLASS(code[i].code) == BPF_JMP) {
			if (!jump(states, code, i, count))
				return false;
			continue;
		}
		enum outcome outcome = execute(s, &code[i], input);
		if (outcome == OUTCOME_REFUSED || (outcome == OUTCOME_NEXT && i + 1 == count))
			return false;
		if (outcome == OUTCOME_NEXT)
			join(&states[i + 1], s);
	}
	return true;
}
