/*
 * System call instructions in compiled code, their numbers, and what a function passes on to
 * functions that get the number from it (values.h).
 *
 *	mov $9, %eax      rax = 9
 *	mov %ebp, %eax    rax = rbp
 *	syscall           number = rax
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/x86_64/values.h"
#include "arch/x86_64/x86_64.h"

#define REGISTER_NUMBER 0 /* rax */
#define RETURN_ADDRESS 8  /* size of a return address */

/* Whether anything from @offset on looks like a system call instruction. */
static bool has_pattern(const struct arch_code *c, size_t offset)
{
	static const uint8_t insn[] = {X86_SYSCALL};

	return memmem(c->bytes + offset, c->size - offset, insn, sizeof(insn));
}

/* Whether the code itself branches to @offset, or other code does. */
static bool is_entered(const struct arch_code *c, const struct x86_values *v, size_t offset)
{
	for (size_t i = 0; i < v->count; i++) {
		if (v->step[i].leads_to == c->at + offset)
			return true;
	}
	for (size_t i = 0; i < c->entry_count; i++) {
		if (c->entry[i] == offset)
			return true;
	}
	return false;
}

/*
 * Whether the system call at @offset ends a signal trampoline. The preceding code shows that:
 * glibc's has an FDE that begins a byte before its code, which must not be decoded; a program's own
 * is inside a function, and no path is seen to lead to it. Treating it as a normal call does harm:
 * a breakpoint at the end of a SIGTRAP handler, with SIGTRAP blocked, makes the kernel reset the
 * handler.
 */
static bool is_sigreturn(const struct arch_code *c, const struct x86_values *v, size_t offset)
{
	static const uint8_t long_way[] = {0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0};
	static const uint8_t short_way[] = {0xb8, SYS_rt_sigreturn, 0, 0, 0};
	const uint8_t *end = c->bytes + offset;

	return ((offset >= sizeof(long_way) &&
		 memcmp(end - sizeof(long_way), long_way, sizeof(long_way)) == 0) ||
		(offset >= sizeof(short_way) &&
		 memcmp(end - sizeof(short_way), short_way, sizeof(short_way)) == 0)) &&
	       !is_entered(c, v, offset);
}

static size_t take_found(const struct arch_code *c, const struct x86_values *v,
			 struct arch_syscall *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < v->count; i++) {
		const struct x86_step *s = &v->step[i];
		if (!s->is_syscall)
			continue;
		if (n < max) {
			out[n] = (struct arch_syscall){.offset = s->offset,
						       .number = ARCH_SYSCALL_ANY};
			if (v->is_known)
				out[n].value = s->before.reg[REGISTER_NUMBER];
			if (out[n].value.kind == ARCH_VALUE_CONSTANT)
				out[n].number = out[n].value.number;
			else if (is_sigreturn(c, v, s->offset))
				out[n].number = SYS_rt_sigreturn;
		}
		n++;
	}
	return n;
}

ssize_t x86_64_find_syscalls(const struct arch_code *code, struct arch_syscall *out, size_t max)
{
	struct x86_values v;
	ssize_t found;

	if (!has_pattern(code, 0))
		return 0;
	if (x86_64_values_read(code, &v) != 0)
		return -ENOMEM;
	found = (ssize_t)take_found(code, &v, NULL, 0);
	if (v.decoded < code->size && has_pattern(code, v.decoded)) {
		found = -EILSEQ;
	} else if (found > 0 && max > 0) {
		x86_64_values_carry(code, &v);
		take_found(code, &v, out, max);
	}
	x86_64_values_deinit(&v);
	return found;
}

/* Whether decoding from @from reaches an instruction that begins at @to. */
static bool leads_to(const ZydisDecoder *decoder, const struct arch_code *code, size_t from,
		     size_t to)
{
	ZydisDecodedInstruction d;

	while (from < to) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    decoder, ZYAN_NULL, code->bytes + from, code->size - from, &d)))
			return false;
		from += d.length;
	}
	return from == to;
}

/*
 *	start of the code     FAR       NEAR    offset
 *	|                     |--starts--|       |
 */
#define FAR 128u
#define NEAR 32u

bool x86_64_is_likely_syscall(const struct arch_code *code, size_t offset)
{
	size_t first = offset > FAR ? offset - FAR : 0, last = offset > NEAR ? offset - NEAR : 0;
	size_t ways = 0;
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t from = first; from <= last; from++)
		ways += leads_to(&decoder, code, from, offset);
	return 2 * ways >= last - first + 1;
}

int x86_64_each_branch_out(const struct arch_code *code, void (*fn)(void *ctx, taddr_t target),
			   void *ctx)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction d;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < code->size; i += d.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
			    &decoder, ZYAN_NULL, code->bytes + i, code->size - i, &d)))
			return x86_64_is_filled(code, i) ? 0 : -EILSEQ;
		uint64_t target = x86_64_target(&d, i);
		if (d.raw.imm[0].is_relative && target >= code->size)
			fn(ctx, code->at + target);
	}
	return 0;
}

/* @wanted at the functions that @s calls or jumps to. */
static struct arch_value passed_by(const struct x86_step *s, struct arch_value wanted)
{
	struct arch_value value = {.kind = ARCH_VALUE_UNKNOWN};

	if (wanted.kind == ARCH_VALUE_CONSTANT)
		value = wanted;
	else if (wanted.kind == ARCH_VALUE_REGISTER && wanted.number >= 0 &&
		 wanted.number < X86_REGISTERS)
		value = s->before.reg[wanted.number];
	else if (wanted.kind == ARCH_VALUE_STACK)
		value = x86_64_values_on_stack(
			&s->before, wanted.number - (s->is_call ? RETURN_ADDRESS : 0));
	if (value.kind == ARCH_VALUE_ADDRESS)
		value.kind = ARCH_VALUE_UNKNOWN;
	return value;
}

ssize_t x86_64_find_passed(const struct arch_code *code, taddr_t target, struct arch_value wanted,
			   struct arch_value *out, size_t max)
{
	struct x86_values v;
	ssize_t n = 0;

	if (x86_64_values_read(code, &v) != 0)
		return -ENOMEM;
	if (v.decoded == code->size)
		x86_64_values_carry(code, &v);
	for (size_t i = 0; i < v.count; i++) {
		if (v.step[i].leads_to != target)
			continue;
		if ((size_t)n < max)
			out[n] = v.is_known ? passed_by(&v.step[i], wanted) :
					      (struct arch_value){.kind = ARCH_VALUE_UNKNOWN};
		n++;
	}
	if (v.decoded < code->size)
		n = -EILSEQ;
	x86_64_values_deinit(&v);
	return n;
}
