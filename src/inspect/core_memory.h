/*
 * The memory of a core file in the form inspect.h expects: mappings, pages and a source to read
 * from. A core does not record which pages were resident or swapped out, and a page of zeros may
 * never have been touched. So only pages with other content count; pages of zeros are summed
 * separately.
 */
#ifndef PTMEM_INSPECT_CORE_MEMORY_H
#define PTMEM_INSPECT_CORE_MEMORY_H

#include "inspect/core_file.h"
#include "inspect/memory.h"

struct core_sums {
	uint64_t bytes;         /* of memory in the file */
	uint64_t zeros;         /* of these, bytes on pages of zeros */
	uint64_t left_out;      /* bytes mapped, but not in the file */
};

/*
 * Reads the whole file. Returns 0 or -errno. @pages_out has resident pages only; free it with
 * resident_deinit.
 */
int core_memory_read(const struct core_file *c, struct resident *pages_out,
		     struct core_sums *sums_out);

/* Reads from @c, which must outlive the source. */
struct memory_source core_memory_source(const struct core_file *c);

#endif
