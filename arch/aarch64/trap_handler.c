/* The page of the trap handler, for aarch64. See arch/trap_handler.h. */
#include "arch/trap_handler.h"

#include <signal.h>

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
	if (size < A64_SIZE || a64_load(code) != A64_BRK)
		return false;
	*to_out = 0;
	return true;
}

/* No jump reaches all code and leaves all registers as they are: ptmem steps its calls itself. */
bool arch_make_injection(const struct arch_regs *saved, uint64_t mask, uint8_t *out)
{
	return false;
}
