/*
 * Keeps a target alive if ptmem dies while it is attached: a page with a handler of the breakpoint
 * signal, and system calls that complete without a tracer.
 *
 * The page, mapped readable and executable in the target:
 *
 *	0             the handler's code
 *	HANDLER_ACTION  argument for installing it; HANDLER_DEFAULT: the same for the default action
 *	HANDLER_DATA    struct handler_data, written by ptmem, read by the handler
 *	HANDLER_COPY    data for another ptmem to remove everything (guard/guardian.h)
 *
 * While ptmem lives it suppresses the signals of its own breakpoints, so the handler does not see
 * them. Without a tracer it resumes a thread that hit one where ptmem would have resumed it without
 * recording; a thread whose pc ptmem had already moved simply continues. All other signals get the
 * default action, with their own siginfo and registers.
 */
#ifndef PTMEM_ARCH_TRAP_HANDLER_H
#define PTMEM_ARCH_TRAP_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"

#define HANDLER_SIZE 139264u
#define HANDLER_ACTION 512u
#define HANDLER_DEFAULT 576u
#define HANDLER_ACTION_SIZE 32u   /* what rt_sigaction reads and writes */
#define HANDLER_DATA 1024u
#define HANDLER_RANGES 62u
#define HANDLER_TRAPS 3900u
#define HANDLER_COPY 65536u

struct handler_data {
	uint64_t trap_count;  /* set after its trap was filled in */
	uint64_t range_count;
	struct { uint64_t start, end; } range[HANDLER_RANGES]; /* bounds of our pages */
	struct { uint64_t addr, resume; } trap[HANDLER_TRAPS];
};
_Static_assert(HANDLER_DATA + sizeof(struct handler_data) <= HANDLER_COPY,
	       "the data fits behind the code");

/* Fills in @out, HANDLER_DATA bytes for the page at @at. Returns the handler's address. */
taddr_t arch_trap_handler_page(taddr_t at, uint8_t *out);

/*
 * Whether @code, @size bytes at @at, begins with ptmem's patch of a function's entry: a breakpoint
 * (*to_out is 0), or a jump, to *to_out.
 */
bool arch_is_patch(const uint8_t *code, size_t size, taddr_t at, taddr_t *to_out);

#define INJECTION_SIZE 160u

/*
 * Code for @at: a system call instruction, then restores the signal mask @mask and all of @saved,
 * and continues that thread, restarting a system call that was interrupted. @out: INJECTION_SIZE
 * bytes. False if no such code leads from @at to the thread's pc: then ptmem steps the thread over
 * an existing system call instruction.
 */
bool arch_make_injection(const struct arch_regs *saved, taddr_t at, uint64_t mask, uint8_t *out);

#endif
