/*
 * x86-64 as data: the registers in the kernel's NT_PRSTATUS set (struct user_regs_struct of
 * <sys/user.h>), their DWARF numbers (System V ABI, AMD64 supplement, figure 3.36), and the few
 * instructions that ptmem writes or searches for.
 */
#include "arch/arch.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <linux/audit.h>
#include <linux/ptrace.h>
#include <signal.h>
#include <sys/syscall.h>

#include "arch/x86_64/x86_64.h"
#include "arch/stopped_calls.h"

_Static_assert(WORD_COUNT == ARCH_REG_WORDS, "struct user_regs_struct has 27 words");

static const struct arch_stopped_call stopped_calls[] = {
	{SYS_epoll_wait, TIMEOUT_MS, 4, 0},
	STOPPED_CALLS,
	{.nr = -1},
};

/* KVM's clock is the same counter, scaled: a guest may have this source alone. */
static const char *const ticks_clocksources[] = {"tsc", "kvm-clock", NULL};

static const struct arch x86_64 = {
	.name = "x86_64",
	.audit_arch = AUDIT_ARCH_X86_64,
	.elf_machine = EM_X86_64,
	.elf_class = ELFCLASS64,
	.elf_relative = R_X86_64_RELATIVE,
	.pc = RIP,
	.sp = RSP,
	.fp = RBP,
	.ret = RAX,
	.syscall_nr = ORIG_RAX,
	.syscall_ret = RAX,
	.syscall_insn_nr = RAX,
	.arg = {RDI, RSI, RDX, RCX, R8, R9},
	.syscall_arg = {RDI, RSI, RDX, R10, R8, R9},
	.thread_pointer = FS_BASE,
	.thread_vector = 8,
	.vector_note = NT_X86_XSTATE,
	.red_zone = 128,
	.return_size = ARCH_RETURN_SIZE,
	.dwarf_word = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15,
		       RIP},
	.dwarf_perf =
		{
			PERF_REG_X86_AX,
			PERF_REG_X86_DX,
			PERF_REG_X86_CX,
			PERF_REG_X86_BX,
			PERF_REG_X86_SI,
			PERF_REG_X86_DI,
			PERF_REG_X86_BP,
			PERF_REG_X86_SP,
			PERF_REG_X86_R8,
			PERF_REG_X86_R9,
			PERF_REG_X86_R10,
			PERF_REG_X86_R11,
			PERF_REG_X86_R12,
			PERF_REG_X86_R13,
			PERF_REG_X86_R14,
			PERF_REG_X86_R15,
			PERF_REG_X86_IP,
		},
	.dwarf_sp = 7,
	.dwarf_fp = 6,
	.dwarf_pc = 16,
	.dwarf_return = 16,
	.dwarf_saved = {6, 3, 12, 13, 14, 15}, /* rbp, rbx, r12-r15 */
	.stub_cfa_offset = 16,
	.stub_saved_slot = -2,
	.trap = {X86_TRAP},
	.trap_size = 1,
	.trap_pc_offset = 1,
	.trap_code = SI_KERNEL,
	.flags = EFLAGS,
	.step_flag = 0x100,
	.syscall_insn = {X86_SYSCALL},
	.syscall_insn_size = X86_SYSCALL_SIZE,
	.stopped_calls = stopped_calls,
	.set_word = PTRACE_POKEUSR,
	.ticks_clocksources = ticks_clocksources,
	.nop_insn = {0x90},
	.jump_size = X86_JUMP_SIZE,
	.has_pads = true,
	.has_self_pointer = true,
	.reach = UINT32_C(1) << 30,
	.long_nop = {0x0f, 0x1f, 0x44, 0x00, 0x00},
	.long_nop_size = 5,
	/* rol $3, $13, $61, $51, %rdi: 128 bits in all; xchg %rbx, %rbx */
	.marker = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d, 0x48, 0xc1, 0xc7, 0x3d, 0x48,
		   0xc1, 0xc7, 0x33, 0x48, 0x87, 0xdb},
	.marker_size = 19,
	.request_arg = RAX,
	.request_result = RDX,
	.relocate = x86_64_relocate,
	.make_stub = x86_64_make_stub,
	.find_syscalls = x86_64_find_syscalls,
	.is_likely_syscall = x86_64_is_likely_syscall,
	.each_branch_out = x86_64_each_branch_out,
	.each_again = x86_64_each_again,
	.find_passed = x86_64_find_passed,
	.each_hint = x86_64_each_hint,
	.has_call = x86_64_has_call,
	.refers = x86_64_refers,
	.each_fact = x86_64_each_fact,
	.make_syscall_stub = x86_64_make_syscall_stub,
	.parse_operand = x86_64_parse_operand,
	.is_entered = x86_64_is_entered,
	.uses_stack_arguments = x86_64_uses_stack_arguments,
};

const struct arch *const arch_native = &x86_64;

uint64_t arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

void arch_unwind_regs(const struct arch *arch, const struct arch_regs *regs,
		      struct arch_unwind_regs *out)
{
	for (size_t i = 0; i < ARCH_DWARF_REGS; i++)
		out->reg[i] = regs->word[arch->dwarf_word[i]];
}
