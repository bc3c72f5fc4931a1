/*
 * What is known of one ELF file for unwinding: its CFI, once it is checked, its code, and the
 * rules compiled from them.
 */
#ifndef PTMEM_UNWIND_CFI_H
#define PTMEM_UNWIND_CFI_H

#include <elfutils/libdw.h>
#include <libelf.h>

#include "arch/arch.h"
#include "arch/unwind_rule.h"
#include "base/hash.h"
#include "base/types.h"

/*
 * The rules compiled for one ELF file, by address in the file. They are shared: a rule compiled for
 * one process, or a guess that failed on one stack, is known to all others. None is removed.
 */

struct cached_rule {
	struct unwind_rule rule; /* its pc is unset */
	uint64_t vaddr;
	bool is_exact, is_guess; /* as for rules_compile */
};

struct rule_cache {
	HASH(struct cached_rule) rules;
};

/* NULL if it has not been compiled yet. Valid until the next rule_cache_add. */
const struct cached_rule *rule_cache_find(const struct rule_cache *k, uint64_t vaddr,
					  bool is_exact);
/* @rule must not be in the table yet. */
void rule_cache_add(struct rule_cache *k, const struct cached_rule *rule);
void rule_cache_deinit(struct rule_cache *k);

/*
 * The unwind information of one ELF file: rows of .eh_frame and .debug_frame, in the file or a
 * separate debug file, and, where there are none, the machine code. Addresses are those of the
 * file.
 *
 * The opened tables are stored in elf_file.cfi_user and live as long as the file.
 */

struct elf_file;

/* Reads now what cfi_find and cfi_code_start otherwise read when they are first called. */
void cfi_prepare(struct elf_file *file);

/* The row that covers @vaddr; the caller frees it. NULL if there is none, or it is malformed. */
Dwarf_Frame *cfi_find(struct elf_file *file, uint64_t vaddr);

/* The same, from the file's .eh_frame only. */
Dwarf_Frame *cfi_find_eh_frame(struct elf_file *file, uint64_t vaddr);

/*
 * As dwarf_frame_register. Where a return address is signed, older versions of libdw take the note
 * of that for SPARC's DW_CFA_GNU_window_save, by which registers are at and above the CFA: they are
 * unchanged.
 */
int cfi_register(Dwarf_Frame *row, int number, Dwarf_Op memory[3], Dwarf_Op **ops_out,
		 size_t *count_out);

/*
 * The code of the file at @vaddr: *size_out bytes, at least @want unless the segment ends before or
 * @want is above 64 MiB. NULL if there is no code. Valid until the next call for the file.
 */
const uint8_t *cfi_code(struct elf_file *file, uint64_t vaddr, uint64_t want, size_t *size_out);

enum cfi_start {
	CFI_START_NONE,     /* nothing found */
	CFI_START_FUNCTION, /* the entry of the function that contains the address */
	CFI_START_GAP,      /* the entry of an earlier function, without symbols between */
	CFI_START_SOMEWHERE, /* code before it, perhaps in the middle of an instruction */
};

/* Finds where to start decoding code that leads to @vaddr. */
enum cfi_start cfi_code_start(struct elf_file *file, uint64_t vaddr, uint64_t *start_out);

/* The rules compiled for the file so far. Valid as long as the file. */
struct rule_cache *cfi_rule_cache(struct elf_file *file);

/*
 * How many rules were compiled from the file's instructions alone: of frames with a frame pointer,
 * at which the caller's is, and then the return address; and others.
 */
struct frame_counts {
	uint32_t framed, others;
};
struct frame_counts *cfi_frame_counts(struct elf_file *file);

/*
 * Where the file has the epilogue for which unwind_find_stub_epilogue searches; all zero: not
 * searched yet. It belongs to the file, and lives as long.
 */
struct stub_epilogue {
	bool is_searched;
	uint64_t vaddr; /* 0 = there is none */
	int popped;
};
struct stub_epilogue *cfi_stub_epilogue(struct elf_file *file);

/*
 * Whether a function takes part in the exceptions that pass through it, as the program's own
 * unwinder sees it.
 */

/*
 * Whether .eh_frame_hdr of @elf maps @vaddr to an entry of .eh_frame without a personality routine.
 * Also false if there is no such table or entry. Does not check that the entry extends to @vaddr.
 */
bool personality_is_absent(Elf *elf, uint64_t vaddr);

#endif
