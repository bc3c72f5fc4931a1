/*
 * Which numbers a system call instruction may call by that takes its number from its
 * function's caller, as glibc's read, write and others do since 2.41:
 *
 *	read        pushes its number, calls A
 *	A           pushes that once more, calls B
 *	B           takes it from the stack into an argument, calls C
 *	C           makes the call by its argument
 *
 * That is proven if no code outside the file can know of the functions A, B and C, and
 * inside it they are only called, by code that was read. Any doubt, and the numbers
 * are not known. Internal to src/tracee.
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
	bool is_proven;    /* these are all */
	VEC(size_t) list;  /* functions; owned */
};

/* What was found out of a file so far; zeroed at first. */
struct syscall_known {
	VEC(struct syscall_callers) list;
};

void syscall_known_deinit(struct syscall_known *k);

/*
 * What @value, as known at the start of function @function of @t (linked), may be: true, and
 * the numbers are added to *out, which the caller deinits; or false: it is not known.
 */
bool syscall_callers_numbers(struct syscall_text *t, struct syscall_known *known, size_t function,
			     struct arch_value value, struct syscall_numbers *out);

#endif
