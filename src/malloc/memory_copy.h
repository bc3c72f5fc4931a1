/*
 * A copy of the memory of a process, made so that the process can be resumed before anything is
 * examined. It has the pages that are private copies or can be written to; what the other pages
 * have is in files.
 *
 * Where it is known which pages a process writes to (tracee/os/pagemap.h), most of it is copied
 * while the process is running: all pages, then what was written meanwhile, and so on. When it has
 * been stopped, only what was written since is left.
 */
#ifndef PTMEM_MALLOC_MEMORY_COPY_H
#define PTMEM_MALLOC_MEMORY_COPY_H

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/memory.h"
#include "tracee/os/pagemap.h"

struct copied_part {
	taddr_t start, end;
	size_t at; /* in the data */
};
struct copied_parts {
	VEC(struct copied_part) list; /* ascending, disjoint */
};
struct copy_ranges {
	VEC(struct addr_range) list; /* ascending, disjoint; whole pages */
};

/* Adds a range above all others to @ranges, a struct copy_ranges: a pages_fn. */
void copy_ranges_add(void *ranges, taddr_t start, taddr_t end);

struct memory_copy {
	uint8_t *data;
	size_t capacity, used;
	struct copied_parts parts;  /* of the stopped process */
	struct copied_parts ahead;  /* copied while it was running */
};

/*
 * Allocates memory for @bytes and some more, before the process is stopped. Zero, or more than
 * there is address space for: nothing can be copied, and the capacity is 0.
 */
void memory_copy_init(struct memory_copy *c, uint64_t bytes);
void memory_copy_deinit(struct memory_copy *c);

/*
 * The process is running: copies @written of @from, which may have been copied before. Pages that
 * cannot be read are ignored: they are gone. False: there is no room, and nothing has been copied
 * ahead.
 */
bool memory_copy_ahead(struct memory_copy *c, const struct copy_ranges *written,
		       const struct memory_source *from);
/* Forgets what was copied ahead. */
void memory_copy_restart(struct memory_copy *c);

/*
 * The process is stopped: copies the memory of @from with @pages, except what was copied ahead and
 * is @unchanged since (NULL = nothing is). False, and nothing is copied, if there is more of it
 * than was expected.
 */
bool memory_copy_make(struct memory_copy *c, const struct resident *pages,
		      const struct copy_ranges *unchanged, const struct memory_source *from);

/* From now on memory is read from the copy, @c, instead of @source's; files as before. */
void memory_copy_redirect(struct memory_copy *c, struct memory_source *source);

#endif
