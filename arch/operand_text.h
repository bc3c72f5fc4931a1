/*
 * Arguments of probes as systemtap's notes spell them, [SIZE "@"] OPERAND: all but the operand,
 * which is the assembler's. SIZE is 1, 2, 4 or 8, negative if the value is signed; without it the
 * size is what the operand says, else 8.
 */
#ifndef PTMEM_ARCH_OPERAND_TEXT_H
#define PTMEM_ARCH_OPERAND_TEXT_H

#include <errno.h>

#include "arch/arch.h"

struct operand_text {
	const char *at, *end;
};

/* What a CPU's assembler writes: each takes what it reads from @c. 0, -EINVAL or -ENOTSUP. */
struct operand_grammar {
	int (*take_number)(struct operand_text *c, int64_t *out);
	int (*take_operand)(struct operand_text *c, struct arch_operand *out);
};

/* As arch.parse_operand. */
static inline int operand_text_parse(const struct operand_grammar *grammar, const char *text,
				     size_t size, struct arch_operand *out)
{
	struct operand_text c = {text, text + size}, at = c;
	struct arch_operand o = {.base = ARCH_NO_REG, .index = ARCH_NO_REG, .scale = 1};
	int64_t number;

	if (size == 0)
		return -EINVAL;
	if (grammar->take_number(&at, &number) == 0 && at.at < at.end && *at.at == '@') {
		uint64_t bytes = number < 0 ? -(uint64_t)number : (uint64_t)number;

		if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
			return -EINVAL;
		o.is_signed = number < 0;
		o.size = (uint8_t)bytes;
		c.at = at.at + 1;
	}
	int rc = grammar->take_operand(&c, &o);

	if (rc != 0)
		return rc;
	if (c.at != c.end)
		return -EINVAL;
	o.size = o.size ? o.size : 8;
	*out = o;
	return 0;
}

#endif
