/*
 * A copy of the memory of a stopped process, made at once so that the process can be resumed before
 * anything is examined. It has the pages that are private copies or can be written to; what the
 * other pages have is in files.
 */
#ifndef PTMEM_INSPECT_MEMORY_COPY_H
#define PTMEM_INSPECT_MEMORY_COPY_H

#include "base/lanes.h"
#include "base/vec.h"
#include "inspect/memory.h"

struct copied_part {
	taddr_t start, end;
	size_t at; /* in the data */
};

struct memory_copy {
	uint8_t *data;
	size_t capacity;
	VEC(struct copied_part) parts; /* ascending; each is of one piece, or less */
	const struct memory_source *from; /* while it is made */
	/* a CPU's parts: neighbours, since the kernel has a lock for each 2 MiB of addresses */
	struct copied_share {
		size_t next, end;
	} share[LANES_MAX];
	uint32_t shares;
};

/* Allocates memory for @bytes and some more, before the process is stopped. Zero: for nothing. */
void memory_copy_init(struct memory_copy *c, uint64_t bytes);
void memory_copy_deinit(struct memory_copy *c);

/*
 * Copies the memory of @from with @pages. False, and nothing is copied, if there is more of it than
 * was expected.
 */
bool memory_copy_make(struct memory_copy *c, const struct resident *pages,
		      const struct memory_source *from);

/* To read the copy; it does not read files. */
struct memory_source memory_copy_source(struct memory_copy *c);

#endif
