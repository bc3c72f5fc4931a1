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

/* Each finds one, and adds its slabs to @out->slabs; false: it is not there. */
bool musl_find(const struct allocator_input *in, struct allocator *out);
bool musl_old_find(const struct allocator_input *in, struct allocator *out);
bool jemalloc_find(const struct allocator_input *in, struct allocator *out);
bool tcmalloc_find(const struct allocator_input *in, struct allocator *out);
bool mimalloc_find(const struct allocator_input *in, struct allocator *out);
bool mimalloc3_find(const struct allocator_input *in, struct allocator *out);

#endif
