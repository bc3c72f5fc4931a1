/*
 * Arguments of probes as systemtap's notes spell them, as the compiler prints operands:
 *
 *	ARGUMENT := [SIZE "@"] OPERAND
 *	SIZE     := ["-"] ("1" | "2" | "4" | "8")                     minus: signed
 *	OPERAND  := ["#"] NUMBER | REGISTER | "[" REGISTER ["," OFFSET] "]"
 *	OFFSET   := ["#"] NUMBER | REGISTER ["," "lsl" ["#"] NUMBER]
 *	REGISTER := "x" N | "w" N | "xzr" | "wzr" | "sp"
 *	NUMBER   := decimal, with a sign
 *
 * Blanks may follow a comma. Without SIZE the size is that of the register, else 8. Symbols, vector
 * registers and other forms of addresses are rejected.
 */
#include <errno.h>

#include "arch/aarch64/aarch64.h"
#include "arch/operand_text.h"

static bool take(struct operand_text *c, const char *expected)
{
	size_t size = strlen(expected);

	if ((size_t)(c->end - c->at) < size || memcmp(c->at, expected, size) != 0)
		return false;
	c->at += size;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int take_number(struct operand_text *c, int64_t *out)
{
	bool is_marked = take(c, "#"), is_negative = take(c, "-");
	uint64_t value = 0;

	if (c->at == c->end || !is_digit(*c->at))
		return is_marked || is_negative ? -EINVAL : -ENOTSUP;
	for (; c->at < c->end && is_digit(*c->at); c->at++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c->at - '0'), &value))
			return -EINVAL;
	}
	*out = (int64_t)(is_negative ? -value : value);
	return 0;
}

/* 0; -ENOENT: what follows is no general register. */
static int take_register(struct operand_text *c, uint8_t *word_out, uint8_t *size_out)
{
	struct operand_text at = *c;
	unsigned number = 0, digits = 0;
	bool is_half = take(&at, "w");

	if (take(c, "sp")) {
		*word_out = A64_SP;
		*size_out = 8;
		return 0;
	}
	if (!is_half && !take(&at, "x"))
		return -ENOENT;
	for (; at.at < at.end && is_digit(*at.at) && digits < 2; at.at++, digits++)
		number = 10 * number + (unsigned)(*at.at - '0');
	if (digits == 0 || number > A64_LR || (at.at < at.end && is_digit(*at.at)))
		return -ENOENT;
	*word_out = (uint8_t)number;
	*size_out = is_half ? 4 : 8;
	*c = at;
	return 0;
}

static void skip_blanks(struct operand_text *c)
{
	while (take(c, " "))
		;
}

/* What follows the base register in brackets: a constant, or another register, which is shifted. */
static int take_offset(struct operand_text *c, struct arch_operand *out)
{
	int64_t shift = 0;
	uint8_t size;
	int rc = 0;

	skip_blanks(c);
	if (take_register(c, &out->index, &size) != 0)
		return take_number(c, &out->value);
	if (take(c, ",")) {
		skip_blanks(c);
		if (!take(c, "lsl"))
			return -ENOTSUP;
		skip_blanks(c);
		rc = take_number(c, &shift);
	}
	if (rc != 0 || shift < 0 || shift > 3 || size != 8)
		return rc != 0 ? rc : -ENOTSUP;
	out->scale = (uint8_t)(1 << shift);
	return 0;
}

static int take_operand(struct operand_text *c, struct arch_operand *out)
{
	uint8_t size = 8;
	int rc = 0;

	if (take(c, "xzr") || take(c, "wzr")) {
		out->kind = OPERAND_CONSTANT;
		return 0;
	}
	if (take(c, "[")) {
		out->kind = OPERAND_MEMORY;
		if (take_register(c, &out->base, &size) != 0 || size != 8)
			return -ENOTSUP;
		if (take(c, ","))
			rc = take_offset(c, out);
		return rc == 0 && !take(c, "]") ? -EINVAL : rc;
	}
	if (take_register(c, &out->base, &size) == 0) {
		out->kind = OPERAND_REGISTER;
		out->size = out->size ? MIN(out->size, size) : size;
		return 0;
	}
	out->kind = OPERAND_CONSTANT;
	return take_number(c, &out->value);
}

int aarch64_parse_operand(const char *text, size_t size, struct arch_operand *out)
{
	static const struct operand_grammar grammar = {take_number, take_operand};

	return operand_text_parse(&grammar, text, size, out);
}
