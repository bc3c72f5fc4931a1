/*
 * Arguments of probes and whole notes, whatever they hold: refused, or something that a
 * register set has, and no byte read beyond their end.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "tracee/calls/client_request.h"

#define WORDS "\0\020\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* Those that begin with 'n' are notes, all others are arguments. */
const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT("8@%rdi"), FUZZ_TEXT("-4@8(%rbp)"), FUZZ_TEXT("4@$5"), FUZZ_TEXT("8@-0x10(%rax,%r15,8)"),
	FUZZ_TEXT("1@%r10b"), FUZZ_TEXT("(,%rcx,4)"),
	FUZZ_TEXT("n" WORDS "ptmem\0alloc\0" "8@%rdi -4@8(%rbp)"),
	FUZZ_TEXT("n" WORDS "otel_memory\0free\0" "8@$5"),
	{0},
};

static int read_zeros(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx, (void)addr;
	CHECK(size <= 8);
	memset(buf, 0xa5, size);
	return 0;
}

static void use(const struct arch_operand *o)
{
	struct arch_regs regs = {.word = {1, 2, 3}};
	uint64_t value;
	CHECK(o->size == 1 || o->size == 2 || o->size == 4 || o->size == 8);
	CHECK(o->kind >= OPERAND_CONSTANT && o->kind <= OPERAND_MEMORY);
	CHECK(o->base < ARCH_REG_WORDS || o->base == ARCH_NO_REG);
	CHECK(o->index < ARCH_REG_WORDS || o->index == ARCH_NO_REG);
	CHECK(marker_value(o, &regs, read_zeros, NULL, &value) == 0);
	CHECK(o->is_signed || o->size == 8 || value >> 8 * o->size == 0);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1); /* exactly as large: a sanitizer sees reads beyond it */
	struct arch_operand o;
	struct marker m;
	if (size)
		memcpy(exact, data, size);
	if (size > 0 && exact[0] == 'n') {
		if (marker_read_note(arch_native, exact + 1, size - 1, 0x2000, &m) == 0) {
			CHECK(m.kind == MARKER_ALLOC || m.kind == MARKER_FREE);
			use(&m.block);
			if (m.kind == MARKER_ALLOC)
				use(&m.size);
		}
	} else if (arch_native->parse_operand((const char *)exact, size, &o) == 0) {
		use(&o);
	}
	free(exact);
}
