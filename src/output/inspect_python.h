/* Python's allocator, as text and JSON. */
#ifndef PTMEM_OUTPUT_INSPECT_PYTHON_H
#define PTMEM_OUTPUT_INSPECT_PYTHON_H

#include <stdio.h>

#include "inspect/inspect.h"

/* The sentence about it; nothing if it was not found. */
void inspect_python_print_summary(FILE *f, const struct inspect_report *r);
/* How full its arenas are, and what pins the emptiest: at most @rows types. */
void inspect_python_print(FILE *f, const struct inspect_report *r, size_t rows);
/* Why its blocks may be wrong or missing. */
void inspect_python_print_doubts(FILE *f, const struct python_report *p);
/* A member of an object, with the comma after it; nothing if it was not found. */
void inspect_python_write_json(FILE *f, const struct inspect_report *r);

#endif
