/* The page of the trap handler, for aarch64. See arch/trap_handler.h. */
#include "arch/trap_handler.h"

#include <signal.h>
#include <sys/syscall.h>

#include "arch/aarch64/aarch64.h"

extern const uint8_t aarch64_trap_handler[], aarch64_trap_handler_end[];

/* The kernel's struct sigaction. Without a restorer signals return through the vdso. */
struct kernel_action {
	uint64_t handler, flags, restorer, mask;
};
_Static_assert(sizeof(struct kernel_action) == HANDLER_ACTION_SIZE, "as the kernel has it");
_Static_assert(offsetof(struct handler_data, trap) == 16 + 62 * 16, "as in trap_handler_code.S");

taddr_t arch_trap_handler_page(taddr_t at, uint8_t *out)
{
	size_t size = (size_t)(aarch64_trap_handler_end - aarch64_trap_handler);
	struct kernel_action action = {
		.handler = at,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER,
	};

	memset(out, 0, HANDLER_DATA);
	memcpy(out, aarch64_trap_handler, MIN(size, (size_t)HANDLER_ACTION));
	memcpy(out + HANDLER_ACTION, &action, sizeof(action));
	return at;
}

bool arch_is_patch(const uint8_t *code, size_t size, taddr_t at, taddr_t *to_out)
{
	if (size < A64_SIZE)
		return false;
	uint32_t insn = a64_load(code);
	bool is_jump = a64_decode(insn, at, to_out) == A64_IS_BRANCH;
	if (!is_jump)
		*to_out = 0;
	return is_jump || insn == A64_BRK;
}

static uint32_t move(unsigned reg, unsigned value)
{
	return 0xd2800000u | value << 5 | reg;
}

/*
 * Only b leaves all registers as they are, so the pc must be in its reach: mostly it is, since the
 * code is in the vdso, near all libraries. The kernel has moved the pc of an interrupted call
 * back.
 */
bool arch_make_injection(const struct arch_regs *saved, taddr_t at, uint64_t mask, uint8_t *out)
{
	static const uint8_t changed[] = {0, 1, 2, 3, 4, 5, 8}; /* by the calls */
	enum { MASK = 64, WORDS = MASK + 8 };
	uint32_t insn[MASK / A64_SIZE] = {
		A64_SVC,
		move(0, SIG_SETMASK),
		0x10000001u | (MASK - 2 * A64_SIZE) / A64_SIZE << 5, /* adr x1, mask */
		move(2, 0),
		move(3, 8),
		move(8, SYS_rt_sigprocmask),
		A64_SVC,
	};
	_Static_assert(WORDS + 8 * sizeof(changed) <= INJECTION_SIZE, "the code has its size");
	unsigned n = 7;

	memset(out, 0, INJECTION_SIZE);
	for (unsigned i = 0; i < sizeof(changed); i++, n++) { /* ldr of a literal */
		uint32_t distance = WORDS + 8 * i - A64_SIZE * n;

		insn[n] = 0x58000000u | distance / A64_SIZE << 5 | changed[i];
		memcpy(out + WORDS + 8 * i, &saved->word[changed[i]], 8);
	}
	if (!a64_branch(A64_BRANCH, at + A64_SIZE * n, saved->word[A64_PC], &insn[n]))
		return false;
	for (unsigned i = 0; i <= n; i++)
		a64_store(out + A64_SIZE * i, insn[i]);
	memcpy(out + MASK, &mask, sizeof(mask));
	return true;
}
