/*
 * aarch64 as data: the registers in the kernel's NT_PRSTATUS set (struct user_pt_regs of
 * <asm/ptrace.h>), their DWARF numbers (DWARF for the Arm 64-bit Architecture, section 4.1), and
 * the few instructions that ptmem writes or searches for.
 */
#include "arch/arch.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <linux/audit.h>
#include <signal.h>

#include "arch/aarch64/aarch64.h"
#include "arch/stopped_calls.h"

#ifndef NT_ARM_SYSTEM_CALL
#define NT_ARM_SYSTEM_CALL 0x404
#endif

_Static_assert(A64_TLS + 1 == ARCH_REG_WORDS, "as aarch64_cpu.h says");

static const struct arch_stopped_call stopped_calls[] = {
	STOPPED_CALLS,
	{.nr = -1},
};

static const char *const ticks_clocksources[] = {"arch_sys_counter", NULL};

#define ROW(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7

static const struct arch aarch64 = {
	.name = "aarch64",
	.audit_arch = AUDIT_ARCH_AARCH64,
	.elf_machine = EM_AARCH64,
	.elf_class = ELFCLASS64,
	.elf_relative = R_AARCH64_RELATIVE,
	.pc = A64_PC,
	.sp = A64_SP,
	.fp = A64_FP,
	.ret = 0,
	.syscall_nr = A64_SYSCALL,
	.syscall_insn_nr = 8,
	.syscall_ret = 0,
	.arg = {0, 1, 2, 3, 4, 5},
	.syscall_arg = {0, 1, 2, 3, 4, 5},
	.more_words = {{NT_ARM_SYSTEM_CALL, A64_SYSCALL, 4, true}, {NT_ARM_TLS, A64_TLS, 8, false}},
	.thread_pointer = A64_TLS,
	.thread_vector = 0,
	.vector_note = NT_PRFPREG,
	.return_size = ARCH_RETURN_SIZE,
	.link = A64_LR,
	.dwarf_word = {ROW(0), ROW(8), ROW(16), ROW(24), A64_PC},
	.dwarf_perf = {ROW(0), ROW(8), ROW(16), ROW(24), PERF_REG_ARM64_PC},
	.dwarf_sp = 31,
	.dwarf_fp = 29,
	.dwarf_pc = 32,
	.dwarf_return = 30,
	.dwarf_saved = {29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
	.stub_cfa_offset = 16,
	.stub_saved_slot = -2,
	.trap = A64_BYTES(A64_BRK),
	.trap_size = A64_SIZE,
	.trap_pc_offset = 0,
	.trap_code = TRAP_BRKPT,
	.flags = A64_PSTATE,
	.step_flag = 0, /* the kernel does not show it */
	.syscall_insn = A64_BYTES(A64_SVC),
	.syscall_insn_size = A64_SIZE,
	.stopped_calls = stopped_calls,
	.hides_restart = true,
	.sends_call_step = true,
	.libunwind_names_frame = true,
	.ticks_clocksources = ticks_clocksources,
	.nop_insn = A64_BYTES(A64_NOP),
	.jump_size = A64_SIZE,
	.has_pads = true,
	.reach = UINT32_C(120) << 20, /* b: 128 MiB, less what an area and a function have */
	.long_nop = A64_BYTES(A64_NOP),
	.long_nop_size = A64_SIZE,
	/* ror x12, x12, #3, #13, #51, #61: 128 bits in all; orr x10, x10, x10 */
	.marker = {0x8c, 0x0d, 0xcc, 0x93, 0x8c, 0x35, 0xcc, 0x93, 0x8c, 0xcd, 0xcc, 0x93, 0x8c,
		   0xf5, 0xcc, 0x93, 0x4a, 0x01, 0x0a, 0xaa},
	.marker_size = 20,
	.request_arg = 4,
	.request_result = 3,
	.relocate = aarch64_relocate,
	.make_stub = aarch64_make_stub,
	.find_syscalls = aarch64_find_syscalls,
	.is_likely_syscall = aarch64_is_likely_syscall,
	.each_branch_out = aarch64_each_branch_out,
	.each_again = aarch64_each_again,
	.find_passed = aarch64_find_passed,
	.each_hint = aarch64_each_hint,
	.has_call = aarch64_has_call,
	.refers = aarch64_refers,
	.each_fact = aarch64_each_fact,
	.make_syscall_stub = aarch64_make_syscall_stub,
	.parse_operand = aarch64_parse_operand,
	.is_entered = aarch64_is_entered,
	.uses_stack_arguments = aarch64_uses_stack_arguments,
};

const struct arch *const arch_native = &aarch64;

uint64_t arch_ticks(void)
{
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}

/*
 * The code begins behind the bits of user space's addresses. A stack is at the top of these, so
 * that of ptmem, under the same kernel, has them all.
 */
taddr_t arch_return_address(uint64_t word)
{
	uint64_t own = (uintptr_t)__builtin_frame_address(0);

	return word & (UINT64_MAX >> __builtin_clzll(own));
}

void arch_unwind_regs(const struct arch *arch, const struct arch_regs *regs,
		      struct arch_unwind_regs *out)
{
	for (size_t i = 0; i < ARCH_DWARF_REGS; i++)
		out->reg[i] = regs->word[arch->dwarf_word[i]];
}
