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
#ifndef PTMEM_INSPECT_BLOCK_TYPES_H
#define PTMEM_INSPECT_BLOCK_TYPES_H

#include "base/types.h"
#include "base/vec.h"
#include "inspect/type_reader.h"

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
	uint32_t header;        /* Python: bytes before each object, where no reference leads */
	uint64_t blocks, bytes; /* usable */
	uint64_t smallest, largest;
	uint64_t pages;         /* nearly empty ones that these pin, perhaps with others */
};

struct known_word;

struct block_types {
	VEC(struct block_type) list;
	/* only while blocks are added */
	uint32_t of_kind[KIND_COUNT]; /* index + 1; 0 = none yet */
	uint32_t of_size[4096 / 16 + 1 + 64];
	struct type_reader reader;
	struct known_word *known; /* what words at blocks' starts lead to; by hash */
	/* a bit for each 2 MiB of address space with memory; with objects */
	uint64_t *mapped, *objects;
	uint32_t *table;          /* types by hash: index + 1 */
	size_t table_size;        /* a power of two */
};

/* Zero: no types. */
void block_types_init(struct block_types *t, struct inspect_memory *m);
void block_types_add_object(struct block_types *t, taddr_t start, taddr_t end);
void block_types_deinit(struct block_types *t);

/* Counts the block at @addr; returns its type, an index. Fast where calls ascend. */
uint32_t block_types_add(struct block_types *t, taddr_t addr, uint64_t usable);

/* All blocks were added, and the memory is gone. */
void block_types_finish(struct block_types *t);

#endif
