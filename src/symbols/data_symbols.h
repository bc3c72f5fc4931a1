/*
 * Names of variables and tables by address, from the symbol tables of objects and of their separate
 * debug files.
 */
#ifndef PTMEM_SYMBOLS_DATA_SYMBOLS_H
#define PTMEM_SYMBOLS_DATA_SYMBOLS_H

#include "base/elf_file.h"

struct data_symbols;

struct data_symbols *data_symbols_new(void);
void data_symbols_free(struct data_symbols *d);

/*
 * The variable of @file that holds @vaddr, as in the symbol table, and how far @vaddr is from its
 * start; NULL if none does. The name stays until data_symbols_free.
 */
const char *data_symbols_find(struct data_symbols *d, struct elf_file *file, uint64_t vaddr,
			      uint64_t *offset_out);

#endif
