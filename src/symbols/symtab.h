/*
 * The ELF symbol tables of an object and of its debug file: functions, variables, and their names
 * in source code.
 */
#ifndef PTMEM_SYMBOLS_SYMTAB_H
#define PTMEM_SYMBOLS_SYMTAB_H

#include "base/elf_file.h"
#include "base/types.h"

/*
 * The functions of one object by address, from its ELF symbol tables. The result is a flat table
 * without overlaps: each address has one name or none. Rules: doc/massif.md section 1.3, and
 * Valgrind 3.19's treatment of overlapping symbols (see symtab.c).
 */

struct symtab_entry {
	uint64_t first, last; /* addresses in the ELF file, both inclusive */
	const char *name;     /* as in the symbol table; points into the file */
	const char *shown;    /* for the caller (the demangled name); initially NULL */
};

struct symtab {
	struct symtab_entry *data; /* ascending, disjoint */
	size_t count, capacity;
};

/*
 * Reads the tables of @file and of @debug, its separate debug file (NULL = none). Both files must
 * stay open as long as the names are used.
 */
void symtab_init(struct symtab *t, struct elf_file *file, struct elf_file *debug);
void symtab_deinit(struct symtab *t);

/* The function that contains @vaddr; NULL between functions. */
struct symtab_entry *symtab_find(struct symtab *t, uint64_t vaddr);

/* Whether @a is the better of two names for the same range: the shorter up to an '@',
 * then the one with a version, then the first in alphabetical order. */
bool symtab_is_better_name(const char *a, const char *b);

/*
 * Names of variables and tables by address, from the symbol tables of objects and of their separate
 * debug files.
 */

struct data_symbols;

struct data_symbols *data_symbols_new(void);
void data_symbols_free(struct data_symbols *d);

/*
 * The variable of @file that holds @vaddr, as in the symbol table, and how far @vaddr is from its
 * start; NULL if none does. The name stays until data_symbols_free.
 */
const char *data_symbols_find(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			      uint64_t *offset_out);

/* What @vaddr of an object's data belongs to: a variable, or the rest of a section. */
struct data_place {
	uint64_t first;         /* where the variable or section begins; addresses in the file */
	uint64_t start, end;    /* around @vaddr: all of this place */
	const char *name;       /* "cache", ".data"; NULL = unknown; until data_symbols_free */
	bool is_variable;
};
/* False: it is in no segment of @file. */
bool data_symbols_place(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			struct data_place *out);

#endif
