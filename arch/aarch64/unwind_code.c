/*
 * What unwinders ask about code: calls, and the signal trampoline. Frames of code without CFI are
 * left by the frame pointer alone.
 */
#include "arch/unwind_code.h"

#include <errno.h>

#include "arch/aarch64/aarch64.h"

#define SIGFRAME_REGS 312 /* siginfo 128, in struct ucontext: mcontext 176, fault address 8 */
#define REG(n) SIGFRAME_REGS + 8 * (n)
#define REGS4(n) REG(n), REG(n + 1), REG(n + 2), REG(n + 3)
#define REGS(n) REGS4(n), REGS4(n + 4)

const uint16_t arch_sigframe_offset[ARCH_DWARF_REGS] = {
	REGS(0), REGS(8), REGS(16), REGS(24), REG(32),
};

bool arch_ends_in_call(const uint8_t *code, size_t size)
{
	uint32_t insn;

	if (size < A64_SIZE)
		return false;
	insn = a64_load(code + size - A64_SIZE);
	return (insn & 0xfc000000u) == A64_CALL ||
	       (insn & 0xfffffc1fu) == 0xd63f0000u || /* blr */
	       (insn & 0xfefff800u) == 0xd63f0800u;   /* with authentication */
}

int arch_pops_and_returns(const uint8_t *code, size_t size)
{
	return size >= 2 * A64_SIZE &&
			       a64_load(code) == 0xa8c17bfdu && /* ldp x29, x30, [sp], #16 */
			       a64_load(code + A64_SIZE) == A64_RET ?
		       0 :
		       -1;
}

bool arch_returns_to_other_stack(const uint8_t *code, size_t at, size_t size,
				 struct unwind_rule *rule_out)
{
	return false;
}

bool arch_is_sigreturn(const uint8_t *code, size_t size)
{
	return size >= ARCH_SIGRETURN_SIZE && a64_load(code) == 0xd2801168u && /* mov x8, #139 */
	       a64_load(code + A64_SIZE) == A64_SVC;
}

bool arch_find_entry(const uint8_t *code, size_t at, uint64_t vaddr, size_t *entry_out)
{
	return false;
}

int arch_scan_function(const uint8_t *code, size_t at, enum arch_scan how,
		       struct unwind_rule *rule_out)
{
	return -ENOTSUP;
}

int arch_scan_return(const uint8_t *code, size_t size, size_t at, struct unwind_rule *rule_out)
{
	return -ENOTSUP;
}
