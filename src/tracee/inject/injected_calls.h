/*
 * The system calls that threads of the target make for ptmem: injected ones, and those of code that
 * ptmem puts there (arch/trap_handler.h). Pads make none.
 */
#ifndef PTMEM_TRACEE_INJECT_INJECTED_CALLS_H
#define PTMEM_TRACEE_INJECT_INJECTED_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sock_filter;

enum injected_call_id {
	CALL_MAP_HANDLER,
	CALL_UNMAP,
	CALL_MAP_AREA,
	CALL_MAP_CODE,
	CALL_CREATE_FILE,
	CALL_CREATE_FILE_OLD, /* if the kernel has no MFD_NOEXEC_SEAL */
	CALL_MAP_FILE,
	CALL_MAP_FILE_OVER,
	CALL_CLOSE,
	CALL_BRK,
	CALL_SET_ACTION,
	CALL_SET_MASK,
	CALL_GET_PROCESS,
	CALL_GET_THREAD,
	CALL_SEND_SIGNAL,
	CALL_END_SIGNAL,
	INJECTED_CALLS
};

struct injected_call {
	const char *name;
	long number;
	uint32_t known; /* bit N: arg[N] always has this value */
	uint64_t arg[6];
};

extern const struct injected_call injected_calls[INJECTED_CALLS];

/* Whether the call is one of them. */
bool injected_calls_has(long number, const uint64_t args[6]);
/* The first that the filter does not allow in a program for @audit_arch; NULL = it allows all. */
const struct injected_call *injected_calls_find_forbidden(const struct sock_filter *filter,
							  size_t count, uint32_t audit_arch);

#endif
