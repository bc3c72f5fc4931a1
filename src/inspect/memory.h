/*
 * Reads the memory of a stopped process without making any of its pages resident. A page that is
 * neither resident nor swapped out was never written, and reads as zeros here.
 */
#ifndef PTMEM_INSPECT_MEMORY_H
#define PTMEM_INSPECT_MEMORY_H

#include "base/types.h"
#include "leak/pointer_scan.h"
#include "tracee/os/resident.h"

/*
 * Reads @each bytes at each of the @count addresses @addr to @buf, consecutively. Bytes that cannot
 * be read become zeros.
 */
typedef void memory_gather_fn(void *ctx, const taddr_t *addr, size_t count, size_t each, void *buf);

/* The memory of a process. */
struct memory_source {
	pointer_read_fn *read;
	memory_gather_fn *gather;
	void *ctx;
};

#define MEMORY_LINES 1024u
#define MEMORY_WINDOW (128u << 10)

struct inspect_memory {
	const struct resident *pages;
	struct memory_source source;
	/* recently read pages, for scattered reads; indexed by page number modulo the size */
	taddr_t *line_addr;
	uint8_t *line;
	/* for reads in ascending order */
	taddr_t window_start;
	uint8_t *window;
	uint64_t bytes; /* bytes read */
};

/* @pages must outlive @m. */
void memory_init(struct inspect_memory *m, const struct resident *pages,
		 const struct memory_source *source);
void memory_deinit(struct inspect_memory *m);

/* Whether all of [@addr, @addr + @size) is mapped and readable. */
bool memory_read(struct inspect_memory *m, taddr_t addr, void *buf, size_t size);
bool memory_read_word(struct inspect_memory *m, taddr_t addr, uint64_t *out);
/* The same for many addresses at once, none of which is in a cache yet. */
void memory_gather(struct inspect_memory *m, const taddr_t *addr, size_t count, size_t each,
		   void *buf);
/* The same for many reads in ascending order. @size: at most one page. */
bool memory_read_ahead(struct inspect_memory *m, taddr_t addr, void *buf, size_t size);

#endif
