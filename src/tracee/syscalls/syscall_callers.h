/*
 * The possible numbers of a system call instruction whose number comes from its function's caller,
 * as in glibc's read, write and others since 2.41:
 *
 *	read        pushes its number, calls A
 *	A           pushes that once more, calls B
 *	B           takes it from the stack into an argument, calls C
 *	C           makes the call by its argument
 *
 * This is proven if no code outside the file can refer to the functions A, B and C, and code inside
 * it, all of which was decoded, only calls them. In case of doubt the numbers are unknown. Internal
 * to src/tracee.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_CALLERS_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_CALLERS_H

#include "tracee/syscalls/syscall_text.h"

struct syscall_numbers {
	VEC(int32_t) list; /* each once */
};

/* The callers of a function. */
struct syscall_callers {
	size_t function;   /* index into the text's functions */
	bool is_proven;    /* the list is complete */
	VEC(size_t) list;  /* functions; owned */
};

/* Cached results for a file; all zeros at first. */
struct syscall_known {
	VEC(struct syscall_callers) list;
};

void syscall_known_deinit(struct syscall_known *k);

/*
 * The possible values of @value, known at the start of function @function of @t (linked). True:
 * they are added to *out, which the caller frees; false: unknown.
 */
bool syscall_callers_numbers(struct syscall_text *t, struct syscall_known *known, size_t function,
			     struct arch_value value, struct syscall_numbers *out);

#endif
