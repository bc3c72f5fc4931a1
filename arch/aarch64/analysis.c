/*
 * What ptmem asks about code of programs. Answers that this port does not know yet are the ones for
 * code that does not decode: then ptmem stops at each system call of a program to which it
 * attaches, and does not find malloc in stripped static programs.
 */
#include <errno.h>

#include "arch/aarch64/aarch64.h"
#include "arch/first_load.h"

ssize_t aarch64_find_syscalls(const struct arch_code *code, struct arch_syscall *out, size_t max)
{
	return -EILSEQ;
}

bool aarch64_is_likely_syscall(const struct arch_code *code, size_t offset)
{
	return (code->at + offset) % A64_SIZE == 0 && code->size - offset >= A64_SIZE &&
	       a64_load(code->bytes + offset) == A64_SVC;
}

int aarch64_each_branch_out(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			    void *ctx)
{
	return -EILSEQ;
}

bool aarch64_each_again(const struct arch_code *code, size_t start,
			void (*fn)(void *ctx, taddr_t at), void *ctx)
{
	return false;
}

ssize_t aarch64_find_passed(const struct arch_code *code, taddr_t target, struct arch_value wanted,
			    struct arch_value *out, size_t max)
{
	return -EILSEQ;
}

/* An address takes two instructions, so each may be a part of one. */
void aarch64_each_hint(const struct arch_code *code, taddr_t start, taddr_t end,
		       void (*fn)(void *ctx, taddr_t at), void *ctx)
{
	for (size_t i = 0; i < code->size; i += A64_SIZE)
		fn(ctx, code->at + i);
}

bool aarch64_has_call(const struct arch_code *code, taddr_t target)
{
	for (size_t i = (size_t)(-code->at % A64_SIZE); i + A64_SIZE <= code->size; i += A64_SIZE) {
		taddr_t to;

		if (a64_decode(a64_load(code->bytes + i), code->at + i, &to) == A64_IS_CALL &&
		    to == target)
			return true;
	}
	return false;
}

int aarch64_refers(const struct arch_code *code, taddr_t from, taddr_t start, taddr_t end)
{
	return -EILSEQ;
}

void aarch64_each_fact(const struct arch_code *code,
		       void (*fn)(void *ctx, const struct arch_fact *fact), void *ctx)
{
}

/* True is the answer for functions that are not called through a stub. */
bool aarch64_uses_stack_arguments(const struct arch_code *code, taddr_t *jumps_to_out)
{
	*jumps_to_out = 0;
	return true;
}

taddr_t arch_find_first_load(const struct arch_code *code, unsigned size)
{
	return 0;
}
