/* The line table of one compilation unit as a flat array that maps addresses to file and line. */
#ifndef PTMEM_SYMBOLS_LINES_H
#define PTMEM_SYMBOLS_LINES_H

#include <elfutils/libdw.h>

#include "base/types.h"
#include "symbols/string_pool.h"

struct source_file {
	const char *dir, *name; /* in the string pool; NULL = unknown */
};

struct source_files {
	struct source_file *data; /* by DWARF file number */
	size_t count, capacity;
};

struct line_row {
	uint64_t addr; /* valid up to the next row's */
	uint32_t file; /* index into the files */
	uint32_t line; /* 0: no line information from here on */
};

struct line_table {
	struct line_row *data; /* ascending, one per address */
	size_t count, capacity;
	struct source_files files;
};

/* The files of the unit @cu_die; empty if there are none. */
void source_files_init(struct source_files *f, Dwarf_Die *cu_die, struct string_pool *strings);
void source_files_deinit(struct source_files *f);

/* File number @i, or one without names if unknown. */
struct source_file source_files_get(const struct source_files *f, uint64_t i);

/* Reads the table of the unit @cu_die; empty if missing or broken. */
void line_table_init(struct line_table *t, Dwarf_Die *cu_die, struct string_pool *strings);
void line_table_deinit(struct line_table *t);

/* The row that contains @addr, or NULL. */
const struct line_row *line_table_find(const struct line_table *t, uint64_t addr);

#endif
