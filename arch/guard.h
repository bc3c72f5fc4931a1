/*
 * What keeps a target alive when ptmem dies while it is attached: a page with a
 * handler of the breakpoint signal, and system calls that finish without a tracer.
 *
 * The page, mapped readable and executable in the target:
 *
 *	0             the handler's code
 *	GUARD_ACTION  what to install it with; GUARD_DEFAULT: the same for the default action
 *	GUARD_DATA    struct guard_data, written by ptmem, read by the handler
 *	GUARD_COPY    what another ptmem needs to take everything out (target/guard.h)
 *
 * While ptmem lives it suppresses the signals of its own breakpoints, so the handler
 * does not see them. Without a tracer it sends a thread that met one on to where ptmem
 * would have let it go unrecorded; a thread whose pc ptmem had already moved just goes
 * on. All other signals get the default action, with their own siginfo and registers.
 */
#ifndef PTMEM_ARCH_GUARD_H
#define PTMEM_ARCH_GUARD_H

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"

#define GUARD_SIZE 139264u
#define GUARD_ACTION 512u
#define GUARD_DEFAULT 576u
#define GUARD_ACTION_SIZE 32u   /* what rt_sigaction reads and writes */
#define GUARD_DATA 1024u
#define GUARD_RANGES 62u
#define GUARD_TRAPS 3900u
#define GUARD_COPY 65536u

struct guard_data {
	uint64_t trap_count;  /* raised after its trap was filled in */
	uint64_t range_count;
	struct { uint64_t start, end; } range[GUARD_RANGES]; /* our pages */
	struct { uint64_t addr, resume; } trap[GUARD_TRAPS];
};
_Static_assert(GUARD_DATA + sizeof(struct guard_data) <= GUARD_COPY, "the data fits behind the code");

/* Fills in @out, GUARD_DATA bytes for the page at @at. Returns the handler's address. */
taddr_t arch_guard_page(taddr_t at, uint8_t *out);

#define INJECTION_SIZE 160u

/*
 * Code for any address: a system call instruction, then what puts back the signal mask
 * @mask and all of @saved, and goes on where that thread was, a system call that it was
 * interrupted in being restarted. @out: INJECTION_SIZE bytes.
 */
void arch_make_injection(const struct arch_regs *saved, uint64_t mask, uint8_t *out);

#endif
