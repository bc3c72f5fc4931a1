/*
 * The system call instructions in a program's text, for SYSCALLS_SITES (syscalls.h).
 *
 * Of each object's code it is found out which instructions may make a call that is
 * watched: those whose number is known to be such, or one of several that are known,
 * and those whose number is not known. A breakpoint at each of them sends the thread
 * through a stub, which makes the call and jumps back; all other calls run at full speed.
 *
 * That is whole only if nothing that looks like a system call instruction lies in
 * code that could not be read from a function's start. Internal to src/tracee.
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
	/* ARCH_SYSCALL_ANY: one of these of syscall_sites.numbers; 0: not known */
	size_t first, count;
};

struct syscall_sites {
	VEC(struct syscall_site) list; /* ascending; all of them if is_whole */
	VEC(int32_t) numbers;
	bool is_whole;     /* there are no others in the file */
};

/* Reads @file, unless it turns out before its end that it is not whole. The caller deinits *out. */
void syscall_sites_find(const struct arch *arch, struct elf_file *file, struct syscall_sites *out);

void syscall_sites_deinit(struct syscall_sites *s);

/* Whether @site of @s may make a call of a number for which @is_wanted says so. */
bool syscall_site_may_call(const struct syscall_sites *s, const struct syscall_site *site,
			   bool (*is_wanted)(const void *ctx, long number), const void *ctx);

/* What an attach does before any thread is stopped: it takes some ms for a libc. */
void syscall_sites_prepare(const struct target *t, struct module *m);

/* Breakpoints at those of @m; @th as install_probes. Notes in @s if they are not all. */
void syscall_sites_install(struct target *t, struct thread *th, struct address_space *s,
			   struct module *m);

/*
 * Looks for code outside of objects that may make calls, too: it has such instructions, or can be
 * written to.
 */
void syscall_sites_check_code(struct target *t, struct address_space *s);

/*
 * The same for @made, which became executable just now. New objects are reported by
 * the dynamic linker.
 */
void syscall_sites_check_made(struct target *t, struct address_space *s, struct mapping_range made);

/* Puts the threads of @s, all stopped, that are in stubs back to the original instructions. */
void syscall_sites_leave(struct target *t, struct address_space *s);

#endif
