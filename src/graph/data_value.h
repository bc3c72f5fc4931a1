/*
 * A value of a process whose type may be known: from a pointer or a struct to a member, and what it
 * says as text. The process is untrusted: what cannot be read is no value, and texts are short.
 */
#ifndef PTMEM_GRAPH_DATA_VALUE_H
#define PTMEM_GRAPH_DATA_VALUE_H

#include <sys/types.h>

#include "base/types.h"
#include "graph/type_table.h"

struct data_value {
	struct type_table *types;
	/* Reads up to @size bytes at @addr: their number, or below 0. */
	ssize_t (*read)(void *ctx, taddr_t addr, void *buf, size_t size);
	void *ctx;
	bool is_word;           /* it is `word`, as of a register; else it is in memory at `at` */
	uint64_t word;
	taddr_t at;
	uint32_t type;          /* TYPE_NONE: unknown */
};

enum value_step {
	VALUE_TAKEN,
	VALUE_NULL,             /* the pointer is NULL */
	VALUE_UNREADABLE,
	VALUE_UNKNOWN,          /* the type is unknown, or has no such member */
};

/*
 * *@v becomes its member @name, or that of what it points to; also one of a base class. Or what is
 * @offset bytes behind the start, of unknown type. Unless VALUE_TAKEN, *@v is of no use any more.
 */
enum value_step data_value_member(struct data_value *v, const char *name);
enum value_step data_value_offset(struct data_value *v, uint64_t offset);

/*
 * The type of the argument in register @number, from 0, of those for integers and pointers, of the
 * function at @address of the file of @units. The address where the function returns an object is
 * one. TYPE_NONE: it is not known.
 */
uint32_t data_argument_type(struct type_table *types, struct debug_units *units, uint64_t address,
			    unsigned number);

/*
 * Where a counted string of C++ or Rust of @type has the address and the length of its text:
 * offsets in it. False: it is none.
 */
bool data_counted_string(struct type_table *types, uint32_t type, uint64_t *data_out,
			 uint64_t *length_out);
/* Whether it is a character. */
bool data_is_character(const struct type_table *types, uint32_t type);

enum value_form { VALUE_AUTO, VALUE_STRING, VALUE_INTEGER, VALUE_HEX };

/*
 * What @v says: a string (also a counted one of C++ and Rust), the name of an enumerator, or an
 * integer. VALUE_AUTO: as its type says; of unknown type a pointer to text is a string. At most 80
 * bytes of a string, without control characters. Malloc'ed; NULL: it cannot be read, or has none.
 */
char *data_value_text(const struct data_value *v, enum value_form form);

#endif
