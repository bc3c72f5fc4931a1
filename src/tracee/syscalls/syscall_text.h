/*
 * The code of one ELF file, laid out as functions, for the search for its system call
 * instructions (syscall_sites.h). Pure but for reading the file. Internal to src/tracee.
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
	uint8_t **bytes;                /* by segment; those without code once they are asked for */
	/* ascending: where branches lead into the middle of others */
	VEC(taddr_t) entries;
	bool is_readable;               /* all functions decode to their ends */
};

/* Reads @file's code. The caller deinits *out. */
void syscall_text_init(const struct arch *arch, struct elf_file *file, struct syscall_text *out);
void syscall_text_deinit(struct syscall_text *t);

/* Fills in entries and is_readable: decodes all code. */
void syscall_text_link(struct syscall_text *t);

/* The index of the last function that starts at or before @vaddr; SIZE_MAX if none. */
size_t syscall_text_function(const struct syscall_text *t, uint64_t vaddr);

/* The one that holds @vaddr, or NULL. */
const struct elf_function *syscall_text_holder(const struct syscall_text *t, uint64_t vaddr);

/*
 * The code of function @i without entries; no bytes if they cannot be read. A gap comes
 * together with the function before it: that one's end may have been said too early (glibc's
 * clone3).
 */
struct arch_code syscall_text_code(const struct syscall_text *t, size_t i);

/*
 * Sets the entries of @code, from elsewhere in the file. The caller free()s what is returned,
 * code->entry.
 */
uint32_t *syscall_text_entries(const struct syscall_text *t, struct arch_code *code);

/* All bytes of segment @i of the file that are in it, or NULL. */
const uint8_t *syscall_text_segment(struct syscall_text *t, size_t i);

#endif
