/*
 * The memory of a core file as inspect.h wants it: mappings, pages and a source to read from. A
 * core does not say which pages were resident or swapped out; pages that hold only zeros may never
 * have been touched. So pages with other content count, and pages of zeros are summed up
 * separately.
 */
#ifndef PTMEM_INSPECT_CORE_MEMORY_H
#define PTMEM_INSPECT_CORE_MEMORY_H

#include "inspect/core_file.h"
#include "inspect/memory.h"

struct core_sums {
	uint64_t bytes;         /* of memory in the file */
	uint64_t zeros;         /* of that, in pages of zeros */
	uint64_t left_out;      /* mapped, and not in the file */
};

/*
 * Reads the whole file. 0 or -errno. @pages_out: of resident pages alone; resident_deinit frees it.
 */
int core_memory_read(const struct core_file *c, struct resident *pages_out,
		     struct core_sums *sums_out);

/* Reads from @c, which must outlive the source. */
struct memory_source core_memory_source(const struct core_file *c);

#endif
