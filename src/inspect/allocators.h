/*
 * Allocators other than glibc's in a stopped process. Each is recognized by its data structures,
 * which are verified, since stripped libraries have no symbols for them:
 *
 *	musl        mallocng, musl 1.2.1 and later (musl.h); the one before (musl_old.h)
 *	jemalloc    5.2.0 to 5.3.1 (jemalloc.h)
 *	tcmalloc    gperftools 2.7 to 2.18 (tcmalloc.h)
 *	mimalloc    2.0.3 to 2.4 (mimalloc.h) and 3.6 (mimalloc3.h), not its secure form
 */
#ifndef PTMEM_INSPECT_ALLOCATORS_H
#define PTMEM_INSPECT_ALLOCATORS_H

#include "inspect/glibc.h"
#include "inspect/glibc_lists.h"
#include "inspect/slabs.h"

/* What there is to search, and for what. */
struct allocator_input {
	struct inspect_memory *memory;
	const struct glibc_range *data;         /* writable data of program and libraries */
	size_t data_count;
	const struct glibc_thread *thread;
	size_t thread_count;
};

struct allocator {
	const char *name;                       /* as malloc_module_other has it; NULL = none */
	struct slabs slabs;                     /* sorted */
	uint32_t caches;                        /* of threads */
};

/* Whether an allocator of that name may be found. */
bool allocator_is_known(const char *name);

/*
 * Finds the first of them that has blocks in use, or the last one that has none: another library
 * may have taken its place. allocator_deinit frees @out.
 */
void allocator_find(const struct allocator_input *in, struct allocator *out);
void allocator_deinit(struct allocator *a);

#endif
