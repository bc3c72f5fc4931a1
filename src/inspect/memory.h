/*
 * Reads the memory of a stopped process without making any of its pages resident. A page that is
 * neither resident nor swapped out was never written: it reads as in the file of the program or
 * library, or as zeros.
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
	/* what the files of the program and its libraries have there; NULL = unknown */
	pointer_read_fn *read_file;
	void *file_ctx;
};

#define MEMORY_LINES 1024u
#define MEMORY_WINDOW (128u << 10)
#define MEMORY_PEEK_MAX 256u

struct inspect_memory {
	const struct resident *pages;
	struct memory_source source;
	/* recently read pages, for scattered reads; indexed by page number modulo the size */
	taddr_t *line_addr;
	uint8_t *line;
	/* for reads in ascending order: where they are, and where they were before */
	struct memory_window {
		taddr_t start;
		uint8_t *data;
	} window, before;
	uint8_t *peeked;
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
/*
 * The @size bytes at @addr, MEMORY_PEEK_MAX at most, until the next call of a function here. Fast
 * where it is not far behind the last memory_read_ahead, or calls ascend.
 */
const void *memory_peek(struct inspect_memory *m, taddr_t addr, size_t size);

#endif
