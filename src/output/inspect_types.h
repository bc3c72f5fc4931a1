/* The types of live blocks, largest first: their numbers add up to those of all. */
#ifndef PTMEM_OUTPUT_INSPECT_TYPES_H
#define PTMEM_OUTPUT_INSPECT_TYPES_H

#include <stdio.h>

#include "inspect/block_types.h"
#include "inspect/holders.h"

#define INSPECT_TYPE_SIZE (TYPE_NAME_MAX * 4)

/* "C++ Foo", "Python dict", "text", "zeros", "40 bytes": in @text, cut if it is longer. */
const char *inspect_type_text(const struct block_type *t, char text[static INSPECT_TYPE_SIZE]);

/* The same for a line of a table. */
const char *inspect_type_short(const struct block_type *t, char text[static INSPECT_TYPE_SIZE]);

/*
 * The table for people: at most @rows of them, and the rest in one row. Below each is what points
 * to its blocks, if @h has it.
 */
void inspect_types_print(FILE *f, const struct block_types *t, const struct block_holders *h,
			 size_t rows);

/* Those that pin most nearly empty pages: at most @rows. */
void inspect_types_print_pins(FILE *f, const struct block_types *t, size_t rows);

/* A member of an object, with the comma after it. */
void inspect_types_write_json(FILE *f, const struct block_types *t, const struct block_holders *h);

#endif
