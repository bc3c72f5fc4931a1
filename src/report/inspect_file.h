/* The JSON written by --inspect (output/inspect_report.h), as far as pictures need it. */
#ifndef PTMEM_REPORT_INSPECT_FILE_H
#define PTMEM_REPORT_INSPECT_FILE_H

#include "base/vec.h"
#include "inspect/account.h"

struct inspect_cell {
	taddr_t start;
	double pages, live, nearly_empty; /* as in struct heap_cell */
};

struct inspect_arena {
	char *name;             /* "main arena", "Python's arenas"; owned */
	bool is_python;         /* malloc_trim returns nothing of it */
	double resident, live, free, trim; /* bytes */
	VEC(struct inspect_cell) cells;
};

struct inspect_file {
	char *title, *all;      /* "process 12, a command"; what the rows add up to; owned */
	double row[ROW_COUNT];  /* resident bytes */
	double sum;
	unsigned pages_per_cell;
	VEC(struct inspect_arena) arenas; /* largest first */
};

bool inspect_file_is(const char *data, size_t size);
/* Takes ownership of @data. -EINVAL with *@why_out if it is malformed. */
int inspect_file_parse(char *data, size_t size, struct inspect_file **out, char **why_out);
void inspect_file_free(struct inspect_file *f);

#endif
