/*
 * The code of one ELF file as a list of functions, for the search for system call instructions
 * (syscall_sites.h). Only reads the file. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_SYSCALLS_SYSCALL_TEXT_H
#define PTMEM_TRACEE_SYSCALLS_SYSCALL_TEXT_H

#include "arch/arch.h"
#include "base/elf_functions.h"
#include "base/vec.h"

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

/* All bytes of segment @i of the file, or NULL. */
const uint8_t *syscall_text_segment(struct syscall_text *t, size_t i);

#endif
