/*
 * Where the variables of a thread are: each object has a block in each thread. Hides: the dynamic
 * thread vector (Drepper, ELF Handling For Thread-Local Storage, 3), the numbers that the dynamic
 * linker gives to objects, and how glibc's and musl's differ.
 *
 *	thread pointer -> vector: [0] generation  [1] block of the program  [2] of a library ...
 *
 * glibc describes its own structs for debuggers, by the symbols _thread_db_*, which a stripped
 * library has, too. Without them (musl, static programs) only the program's block is known.
 */
#ifndef PTMEM_GRAPH_THREAD_BLOCKS_H
#define PTMEM_GRAPH_THREAD_BLOCKS_H

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/types.h"

/* A loaded object. */
struct thread_object {
	const struct elf_file *file;
	taddr_t bias;
	uint64_t size;          /* of its block; 0: it has no variables of threads */
	uint64_t number;        /* in the vector; 0 = unknown */
};

/* Memory of the process: whether all of the @size bytes at @addr could be read. */
struct thread_memory {
	bool (*read)(void *ctx, taddr_t addr, void *buf, size_t size);
	void *ctx;
};

struct thread_blocks {
	VEC(struct thread_object) objects;
	struct { uint64_t offset, size; } vector, entry, pointer; /* in bytes; size 0 = unknown */
};

/* Numbers the objects that were added; reads the list of the dynamic linker. */
void thread_blocks_init(struct thread_blocks *b, const struct thread_memory *memory);

/* Start of the block of object @i for the thread with @thread_pointer; 0 = it has none yet. */
taddr_t thread_blocks_find(const struct thread_blocks *b, const struct thread_memory *memory,
			   taddr_t thread_pointer, size_t i);

/* Where the start of an object's block is: in the vector, to which a word of each thread points. */
struct thread_entry {
	int64_t vector;         /* where that word is, from the thread pointer */
	int64_t entry, count;   /* of the vector's words: this one, and the last number it has */
	uint64_t number;
};
/* False: the number of object @i is not known (yet). */
bool thread_blocks_entry(const struct thread_blocks *b, size_t i, struct thread_entry *out);

#endif
