/*
 * Finds the system call instructions in a program's text, for SYSCALLS_SITES (syscalls.h). Each
 * object's code is searched for instructions that may make a watched call: the number is known to
 * be a watched one, or one of several known numbers (syscall_callers_numbers), or it is unknown. A
 * breakpoint at each of them sends the thread through a stub, which makes the call and jumps back;
 * all other calls run at full speed. This is complete only if code that could not be decoded from
 * a function's start contains nothing that looks like a system call instruction. Internal to
 * src/tracee.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_SITES_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_SITES_H

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/elf_file.h"

/*
 * The code of one ELF file as a list of functions, for the search for system call
 * instructions. Only reads the file.
 */

struct syscall_text {
	const struct arch *arch;
	struct elf_file *file;          /* not owned */
	struct elf_functions functions;
	uint8_t **bytes;                /* by segment, read on demand if it has code */
	/* ascending: targets of branches into the middle of other functions */
	VEC(taddr_t) entries;
	bool is_readable;               /* all functions decode to their ends */
};

/* Reads the code of @file. The caller frees *out. */
void syscall_text_init(const struct arch *arch, struct elf_file *file, struct syscall_text *out);
void syscall_text_deinit(struct syscall_text *t);

/* Decodes all code to fill in entries and is_readable. */
void syscall_text_link(struct syscall_text *t);

/* The index of the last function that starts at or before @vaddr; SIZE_MAX if none. */
size_t syscall_text_function(const struct syscall_text *t, uint64_t vaddr);

/* The function that contains @vaddr, or NULL. */
const struct elf_function *syscall_text_holder(const struct syscall_text *t, uint64_t vaddr);

/*
 * The code of function @i without entries; empty if it cannot be read. A gap is returned together
 * with the function before it, whose recorded end may be too early (glibc's clone3).
 */
struct arch_code syscall_text_code(const struct syscall_text *t, size_t i);

/*
 * Sets code->entry, the branches into @code from elsewhere in the file. Returns the array, to be
 * freed by the caller.
 */
uint32_t *syscall_text_entries(const struct syscall_text *t, struct arch_code *code);

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
