/*
 * Allocators other than glibc's in a stopped process: musl (mallocng since 1.2.1, and the one
 * before), jemalloc 5.2.0 to 5.3.1, tcmalloc of gperftools 2.7 to 2.18, mimalloc 2.0.3 to 2.4 and
 * 3.6, not its secure form. Each is recognized by its data structures, which are verified, since
 * stripped libraries have no symbols for them.
 */
#ifndef PTMEM_MALLOC_ALLOCATORS_H
#define PTMEM_MALLOC_ALLOCATORS_H

#include "malloc/glibc.h"
#include "malloc/slabs.h"

/* What there is to search, and for what. */
struct allocator_input {
	struct inspect_memory *memory;
	const struct addr_range *data;         /* writable data of program and libraries */
	size_t data_count;
	const struct glibc_thread *thread;
	size_t thread_count;
};

struct allocator {
	const char *name;                       /* of its row in the table; NULL = none */
	struct slabs slabs;                     /* sorted */
	uint32_t caches;                        /* of threads */
};

#define ALLOCATOR_NAMES 5u

/*
 * A row of the table of allocators. Lists end with NULL, or are full. The names of its libraries
 * are in symbols/code_owner.c.
 */
struct allocator_kind {
	const char *name;                       /* NULL: the end of the table */
	const char *symbols[ALLOCATOR_NAMES];   /* what has one of them, and malloc, is it */
	const char *prefixes[ALLOCATOR_NAMES];  /* of its own functions, in a program */
	/* if they must be known, these alone are read; as jemalloc has them in its constants */
	const char *versions[ALLOCATOR_NAMES];
	/* finds it, and adds its slabs to @out->slabs; false: it is not there. NULL: only a name */
	bool (*find)(const struct allocator_input *in, struct allocator *out);
};
extern const struct allocator_kind allocator_kinds[];

/* The first row that has it, or NULL. */
const struct allocator_kind *allocator_kind_named(const char *name); /* NULL: no allocator */
const struct allocator_kind *allocator_kind_with_symbol(const char *symbol);

/*
 * Finds the first of them that has blocks in use, or the last one that has none: another library
 * may have taken its place. allocator_deinit frees @out.
 */
void allocator_find(const struct allocator_input *in, struct allocator *out);
void allocator_deinit(struct allocator *a);

/* See allocator_kind.find. */
bool musl_find(const struct allocator_input *in, struct allocator *out);
bool musl_old_find(const struct allocator_input *in, struct allocator *out);
bool jemalloc_find(const struct allocator_input *in, struct allocator *out);
bool tcmalloc_find(const struct allocator_input *in, struct allocator *out);
bool mimalloc_find(const struct allocator_input *in, struct allocator *out);
bool mimalloc3_find(const struct allocator_input *in, struct allocator *out);

#endif
