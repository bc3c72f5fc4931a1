/*
 * Types of objects by what the process itself says of them. Nothing is taken on trust: each word
 * must lead where it should, and names must look like names.
 *
 * C++ (Itanium ABI, 2.5 and 2.9): an object that has virtual functions begins with a pointer into
 * the table of its type
 *
 *	table - 16   distance to the whole object: 0 for a block's first object
 *	table - 8    type_info; 0 without RTTI
 *	table        functions
 *	type_info    0 its own table, 8 the mangled name
 *
 * Python (CPython 3.8 to 3.15): the second word of an object points to its type
 *
 *	object       0 references, 8 type
 *	type         0 references, 8 its own type, 24 name, 32 size, 40 size of an item, 168 flags
 *
 * In its block, 16 bytes for the garbage collector are before the object if its type's flags say
 * so, and since 3.11 16 more for its dictionary.
 */
#ifndef PTMEM_INSPECT_TYPE_READER_H
#define PTMEM_INSPECT_TYPE_READER_H

#include "base/vec.h"
#include "inspect/memory.h"

#define TYPE_NAME_MAX 1024u

/* Whether Python may be in the process at all: one of its files is mapped. */
bool python_is_likely(const struct maps *maps);

/* Parts of the program and its libraries, ascending. */
struct type_reader {
	struct inspect_memory *memory;
	VEC(struct heap_part) objects;
	bool has_python;
	taddr_t python_type;    /* the type of types; 0 = not met yet */
};

void type_reader_init(struct type_reader *r, struct inspect_memory *m);
void type_reader_add_object(struct type_reader *r, taddr_t start, taddr_t end);
void type_reader_deinit(struct type_reader *r);

bool type_reader_is_in_object(const struct type_reader *r, taddr_t addr);

/*
 * The mangled name of the C++ type that has its table at @table, malloc'ed. NULL: it is none, or
 * does not say.
 */
char *type_reader_cxx(struct type_reader *r, taddr_t table);

/* Whether @table, in an object, begins with a pointer to code of an object. */
bool type_reader_is_table(struct type_reader *r, taddr_t table);

struct python_type {
	char *name;             /* malloc'ed */
	uint32_t header;        /* bytes before an object of it */
	uint64_t size;          /* of an object without items */
};

/* The Python type at @type. False: it is none. */
bool type_reader_python(struct type_reader *r, taddr_t type, struct python_type *out);

/*
 * Python's debugging hooks (PYTHONMALLOC=debug) ask for 24 bytes more:
 *
 *	size, big endian | letter, 7 bytes FD | what was asked for | 8 bytes FD
 */
#define PYTHON_HOOK_WORDS 2u
#define PYTHON_HOOK_END UINT64_C(0xfdfdfdfdfdfdfdfd)

/* Whether the block that begins with @word is one of these. */
static inline bool python_has_hook(const uint64_t word[static PYTHON_HOOK_WORDS])
{
	return (word[1] | 0xff) == (PYTHON_HOOK_END | 0xff);
}

#endif
