/*
 * Finds the system call instructions in a program's text, for SYSCALLS_SITES (syscalls.h).
 *
 * Each object's code is searched for instructions that may make a watched call: the number is known
 * to be a watched one, or one of several known numbers, or it is unknown. A breakpoint at each of
 * them sends the thread through a stub, which makes the call and jumps back; all other calls run at
 * full speed. This is complete only if code that could not be decoded from a function's start
 * contains nothing that looks like a system call instruction. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_SITES_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_SITES_H

#include "arch/arch.h"
#include "base/elf_file.h"
#include "base/vec.h"

struct mapping_range;
struct module;
struct address_space;
struct target;
struct thread;

struct syscall_site {
	uint64_t vaddr;
	int32_t number;    /* as arch_syscall.number */
	/* ARCH_SYSCALL_ANY: one of these of syscall_sites.numbers; 0: unknown */
	size_t first, count;
};

struct syscall_sites {
	VEC(struct syscall_site) list; /* ascending; all of them if is_whole */
	VEC(int32_t) numbers;
	bool is_whole;     /* there are no others in the file */
};

/* Searches @file; stops early if the result is incomplete. The caller frees *out. */
void syscall_sites_find(const struct arch *arch, struct elf_file *file, struct syscall_sites *out);

void syscall_sites_deinit(struct syscall_sites *s);

/* Whether @site of @s may make a call with a number accepted by @is_wanted. */
bool syscall_site_may_call(const struct syscall_sites *s, const struct syscall_site *site,
			   bool (*is_wanted)(const void *ctx, long number), const void *ctx);

/* Called by an attach before any thread is stopped: takes some ms for a libc. */
void syscall_sites_prepare(const struct target *t, struct module *m);

/*
 * Installs breakpoints at the sites of @m; @th as for install_probes. Records in @s if they are
 * incomplete.
 */
void syscall_sites_install(struct target *t, struct thread *th, struct address_space *s,
			   struct module *m);

/*
 * Searches code outside of objects for calls, too: such code counts if it has these instructions,
 * or is writable.
 */
void syscall_sites_check_code(struct target *t, struct address_space *s);

/* The same for @made, which became executable just now. The dynamic linker reports new objects. */
void syscall_sites_check_made(struct target *t, struct address_space *s, struct mapping_range made);

/* Moves the threads of @s, all stopped, from stubs back to the original instructions. */
void syscall_sites_leave(struct target *t, struct address_space *s);

#endif
