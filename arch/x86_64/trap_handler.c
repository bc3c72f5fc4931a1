/*
 * The page of the trap handler and injected system calls, for x86-64. See arch/trap_handler.h.
 */
#include "arch/trap_handler.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/x86_64/x86_64.h"

extern const uint8_t x86_64_trap_handler[], x86_64_trap_handler_restorer[],
	x86_64_trap_handler_end[];

#define KERNEL_SA_RESTORER 0x04000000u

/* The kernel's struct sigaction. */
struct action {
	uint64_t handler, flags, restorer, mask;
};
_Static_assert(sizeof(struct action) == HANDLER_ACTION_SIZE, "as the kernel has it");
_Static_assert(offsetof(struct handler_data, trap) == 16 + 62 * 16, "as in trap_handler_code.S");

taddr_t arch_trap_handler_page(taddr_t at, uint8_t *out)
{
	size_t size = (size_t)(x86_64_trap_handler_end - x86_64_trap_handler);
	/* not blocked: a handler of the program that interrupts ours may hit a breakpoint, too */
	struct action action = {
		.handler = at,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | KERNEL_SA_RESTORER,
		.restorer = at + (taddr_t)(x86_64_trap_handler_restorer - x86_64_trap_handler),
	};

	memset(out, 0, HANDLER_DATA);
	memcpy(out, x86_64_trap_handler,
	       MIN(size, (size_t)HANDLER_ACTION)); /* a unit test checks that it fits */
	memcpy(out + HANDLER_ACTION, &action, sizeof(action));
	return at;
}

bool arch_is_patch(const uint8_t *code, size_t size, taddr_t at, taddr_t *to_out)
{
	enum { BREAKPOINT = 0xcc, JUMP = 0xe9 };
	int32_t distance;

	if (size == 0 ||
	    (code[0] != BREAKPOINT && (code[0] != JUMP || size < 1 + sizeof(distance))))
		return false;
	*to_out = 0;
	if (code[0] == JUMP) {
		memcpy(&distance, code + 1, sizeof(distance));
		*to_out = at + 1 + sizeof(distance) + (taddr_t)(int64_t)distance;
	}
	return true;
}

/* -- injected system calls -- */

/* Error numbers that the kernel uses internally for system calls to be restarted; linux/errno.h. */
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* The pc and rax with which a thread continues that the kernel would resume at @saved. */
static void find_restart(const struct arch_regs *saved, uint64_t *pc, uint64_t *rax)
{
	const struct arch *arch = arch_native;
	int64_t nr = (int64_t)saved->word[arch->syscall_nr],
		result = (int64_t)saved->word[arch->syscall_ret];
	bool restarts = nr >= 0 && (result == -ERESTARTSYS || result == -ERESTARTNOINTR ||
				    result == -ERESTARTNOHAND || result == -ERESTART_RESTARTBLOCK);

	*pc = saved->word[arch->pc] - (restarts ? arch->syscall_insn_size : 0);
	*rax = !restarts ? saved->word[arch->syscall_ret] :
	       result == -ERESTART_RESTARTBLOCK ? SYS_restart_syscall : (uint64_t)nr;
}

static uint8_t *put(uint8_t *p, const void *bytes, size_t size)
{
	memcpy(p, bytes, size);
	return p + size;
}

/* mov $value, register: encoded by @rex and @opcode. */
static uint8_t *put_load(uint8_t *p, uint8_t rex, uint8_t opcode, uint64_t value)
{
	*p++ = rex;
	*p++ = opcode;
	return put(p, &value, sizeof(value));
}

bool arch_make_injection(const struct arch_regs *saved, taddr_t at, uint64_t mask, uint8_t *out)
{
	static const uint8_t set_mask[] = {
		0x0f, 0x05,                   /* syscall: the injected one; preserves the flags */
		0xb8, SYS_rt_sigprocmask, 0, 0, 0, /* mov to eax */
		0xbf, SIG_SETMASK, 0, 0, 0,   /* mov to edi */
		0x48, 0x8d, 0x35,             /* lea mask(%rip), %rsi */
	}, set_mask_end[] = {
		0xba, 0, 0, 0, 0,             /* mov to edx */
		0x41, 0xba, 8, 0, 0, 0,       /* mov to r10d */
		0x0f, 0x05,
	}, jump[] = {0x3e, 0xff, 0x25, 0, 0, 0, 0}; /* notrack jmp *0(%rip) */
	enum {
		DW_RAX = 0,
		DW_RCX = 2,
		DW_RDX = 1,
		DW_RSI = 4,
		DW_RDI = 5,
		DW_R8 = 8
	}; /* DWARF numbers */
	const uint8_t *word = arch_native->dwarf_word;
	uint64_t pc, rax;
	uint8_t *p = put(out, set_mask, sizeof(set_mask)), *lea = p;

	memset(out + sizeof(set_mask), 0xcc, INJECTION_SIZE - sizeof(set_mask));
	find_restart(saved, &pc, &rax);
	p = put(p + 4, set_mask_end, sizeof(set_mask_end));
	p = put_load(p, 0x48, 0xb8, rax);
	p = put_load(p, 0x48, 0xb9, saved->word[word[DW_RCX]]);
	p = put_load(p, 0x48, 0xba, saved->word[word[DW_RDX]]);
	p = put_load(p, 0x48, 0xbe, saved->word[word[DW_RSI]]);
	p = put_load(p, 0x48, 0xbf, saved->word[word[DW_RDI]]);
	for (unsigned i = 0; i < 4; i++)
		p = put_load(p, 0x49, (uint8_t)(0xb8 + i), saved->word[word[DW_R8 + i]]);
	p = put(p, jump, sizeof(jump));
	p = put(p, &pc, sizeof(pc));
	int32_t to_mask = (int32_t)(p - (lea + 4));
	put(lea, &to_mask, sizeof(to_mask));
	p = put(p, &mask, sizeof(mask));
	return true;
}
