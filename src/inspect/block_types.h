/*
 * The types of blocks in use: of objects of C++ and Python, what the process itself says; of
 * others, how the block begins, or its size.
 */
#ifndef PTMEM_INSPECT_BLOCK_TYPES_H
#define PTMEM_INSPECT_BLOCK_TYPES_H

#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "inspect/cold.h"
#include "inspect/python_shape.h"
#include "malloc/memory.h"
#include "malloc/pymalloc.h"

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

#define TYPE_NAME_MAX 1024u

/* Whether Python may be in the process at all: one of its files is mapped. */
bool python_is_likely(const struct maps *maps);

/* Parts of the program and its libraries, ascending. */
struct type_reader {
	struct inspect_memory *memory;
	VEC(struct addr_range) objects;
	bool has_python;
	taddr_t python_type;    /* the type of types; 0 = not met yet */
};

struct python_type {
	char *name;             /* malloc'ed */
	uint32_t header;        /* bytes before an object of it */
	uint64_t size;          /* of an object without items */
	struct python_shape shape;
};

/*
 * What blocks in use are, by how each begins: TYPE_BYTES bytes at most are looked at. The first
 * that is true:
 *
 *	zeros      all of them are zeros
 *	C++        an object whose type has virtual functions
 *	table      the first word leads to a table of functions of an object file
 *	Python     an object of Python's
 *	pointers   words that lead to memory or are zero; two lead to memory
 *	text       printable characters, at least four, up to a zero or all; the first word does
 *	           not lead to memory
 *	size       otherwise: blocks of about the same size are of one type
 */

#define TYPE_BYTES 256u
#define TYPES_MAX 50000u /* of C++ and the like; blocks of others are sorted by size */

enum block_kind {
	KIND_ZEROS, KIND_CXX, KIND_TABLE, KIND_PYTHON, KIND_TEXT, KIND_POINTERS, KIND_SIZE,
	KIND_COUNT,
};
extern const char *const block_kind_name[KIND_COUNT]; /* "zeros", "C++" */

struct block_type {
	enum block_kind kind;
	uint64_t key;           /* KIND_TABLE: the table's address; KIND_SIZE: number of the size */
	char *name;             /* C++: mangled; Python; NULL of others. Owned */
	taddr_t table;          /* C++: where the first words lead; 0 = not to one place */
	taddr_t class;          /* Python: the object of the type; 0 = there are several */
	enum python_role role;  /* Python: of all of them; otherwise PYTHON_PLAIN */
	uint32_t header;        /* Python: bytes before each object, where no reference leads */
	uint64_t blocks, bytes; /* usable */
	uint64_t smallest, largest;
	uint64_t pages;         /* nearly empty ones that these pin, perhaps with others */
	uint64_t pages_alone;   /* of these, ones that nothing else pins */
	struct cold_bytes untouched; /* if that is wanted */
};

/* The name of a word of blocks of a type. */
struct block_field {
	uint32_t type, word;
	char *name;             /* "items"; "[*]" of elements. Owned */
};

struct known_word;

struct block_types {
	VEC(struct block_type) list;
	VEC(struct block_field) fields; /* of Python's objects; ascending */
	/* only while blocks are added */
	size_t touched_at;        /* where cold_bytes_of ended */
	uint32_t of_kind[KIND_COUNT]; /* index + 1; 0 = none yet */
	uint32_t of_size[4096 / 16 + 1 + 64];
	struct type_reader reader;
	bool wants_python;        /* notes of Python's objects */
	struct python_notes python;
	uint32_t words;           /* of the block that was added last: as in struct block_holders */
	struct known_word *known; /* what words at blocks' starts lead to; by hash */
	/* a bit for each 2 MiB of address space with memory; with objects */
	uint64_t *mapped, *objects;
	HASH(uint32_t) by_key;    /* indexes of list, by kind, key and name */
};

/* Zero: no types. */
void block_types_init(struct block_types *t, struct inspect_memory *m);
void block_types_add_object(struct block_types *t, taddr_t start, taddr_t end);
void block_types_deinit(struct block_types *t);

/* Counts the block at @addr; returns its type, an index. Fast where calls ascend. */
uint32_t block_types_add(struct block_types *t, taddr_t addr, uint64_t usable);

/* The type of Python's with the name @name, which is taken over; UINT32_MAX: there are too many. */
uint32_t block_types_python(struct block_types *t, uint64_t key, char *name);

/* All blocks were added, and the memory is gone. */
void block_types_finish(struct block_types *t);

#endif
