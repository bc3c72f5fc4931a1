/*
 * Reads the memory of a stopped process without making any of its pages resident. A page that is
 * neither resident nor swapped out was never written: it reads as in the file of the program or
 * library, or as zeros.
 */
#ifndef PTMEM_INSPECT_MEMORY_H
#define PTMEM_INSPECT_MEMORY_H

#include "base/types.h"
#include "inspect/read_ahead.h"
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

#define MEMORY_LINES_MIN 1024u
#define MEMORY_LINES_MAX 8192u

struct inspect_memory {
	const struct resident *pages;
	struct memory_source source;
	/*
	 * recently read pages, for scattered reads; indexed by page number modulo the size, which
	 * is a power of two
	 */
	uint32_t lines;
	taddr_t *line_addr;
	uint8_t *line;
	taddr_t filled;         /* where the last of them that was filled ends */
	size_t run;             /* how many were filled then */
	struct read_ahead ahead; /* for reads in ascending order */
	uint64_t bytes; /* bytes read, except by the reads in ascending order */
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
/* Where memory_peek does not find what it looks for. */
const void *memory_move(struct inspect_memory *m, taddr_t addr, size_t size);
/*
 * The @size bytes at @addr, READ_BEYOND at most, until the next call of a function here. Fast where
 * calls ascend, or go back a little.
 */
static inline const void *memory_peek(struct inspect_memory *m, taddr_t addr, size_t size)
{
	const void *found = read_ahead_find(&m->ahead, addr, size);

	return found ? found : memory_move(m, addr, size);
}

#endif
