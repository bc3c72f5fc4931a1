/*
 * The memory of a stopped process: windows read ahead for walks, and single pages for lists.
 */
#ifndef PTMEM_MALLOC_MEMORY_H
#define PTMEM_MALLOC_MEMORY_H

#include <pthread.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/types.h"
#include "tracee/os/pagemap.h"

/*
 * Reads memory in windows of one size, which begin at multiples of it. Where a reader goes from one
 * window to the next, other threads fill those that follow meanwhile: most of the time of a walk
 * through a heap is the kernel's for copying, and CPUs are free while the process is stopped.
 *
 *	before   current   filled   being filled   free
 *	                   helpers and, when it would have to wait, the reader fill these
 *
 * The windows are a ring. Numbers count up; window number n is in place n modulo their count.
 */

#define READ_WINDOW (128u << 10)
#define READ_BEYOND 1024u /* so many bytes more are read: what begins in a window is whole */
#define READ_WINDOWS 8u
#define READ_HELPERS 3u

/* Stores @size bytes at @addr to @buf; returns how many were there. Called by several threads. */
typedef uint64_t read_window_fn(void *ctx, taddr_t addr, uint8_t *buf, size_t size);

struct read_window {
	taddr_t start;  /* READ_NOWHERE = nothing */
	uint8_t *data;  /* READ_WINDOW bytes, and READ_BEYOND */
	uint64_t bytes; /* that were there */
	bool is_filled;
};
#define READ_NOWHERE UINT64_MAX

struct read_ahead {
	read_window_fn *fill;
	void *ctx;
	struct read_window window[READ_WINDOWS];
	uint64_t before, current; /* the reader's */
	uint64_t bytes;         /* of the windows it has had */
	pthread_mutex_t lock;   /* of what follows, and of windows above the current one */
	pthread_cond_t room, filled; /* a window may be claimed; the reader's may be there */
	uint64_t claimed;       /* number of the last window that somebody fills or has filled */
	uint32_t filling;
	bool is_sequential;     /* windows beyond the current one are wanted */
	bool is_ended;
	uint32_t helpers;
	pthread_t helper[READ_HELPERS];
};

void read_ahead_init(struct read_ahead *r, read_window_fn *fill, void *ctx);
void read_ahead_deinit(struct read_ahead *r);

/* Makes the window with @addr the current one, and the current one the one before. */
void read_ahead_move(struct read_ahead *r, taddr_t addr);

static inline const uint8_t *read_window_find(const struct read_window *w, taddr_t addr,
					      size_t size)
{
	/* nowhere is above all addresses */
	bool is_in = addr >= w->start &&
		     addr - w->start <= READ_WINDOW + READ_BEYOND - size;

	return is_in ? w->data + (addr - w->start) : NULL;
}

/*
 * The @size bytes at @addr, READ_BEYOND at most, if they are in the current window, or the one
 * before; else NULL.
 */
static inline const uint8_t *read_ahead_find(const struct read_ahead *r, taddr_t addr, size_t size)
{
	const uint8_t *found = read_window_find(&r->window[r->current % READ_WINDOWS], addr, size);

	return found ? found : read_window_find(&r->window[r->before % READ_WINDOWS], addr, size);
}

#define PAGE_WORDS (PAGE_SIZE_MIN / sizeof(uint64_t))

/*
 * Reads the memory of a stopped process without making any of its pages resident. A page that is
 * neither resident nor swapped out was never written: it reads as in the file of the program or
 * library, or as zeros.
 */

/*
 * Reads @each bytes at each of the @count addresses @addr to @buf, consecutively. Bytes that cannot
 * be read become zeros.
 */
typedef void memory_gather_fn(void *ctx, const taddr_t *addr, size_t count, size_t each, void *buf);

/*
 * Reads memory of a stopped process; called by several threads. Returns the number of bytes read
 * from @addr on, <= 0 if none.
 */
typedef ssize_t memory_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);

/* As process_vm_readv: a part that cannot be read ends it. Called by several threads. */
typedef ssize_t memory_scatter_fn(void *ctx, const struct iovec *to, const struct iovec *from,
				  size_t count);

/* Where @size bytes at @addr are in our memory; NULL: they are not, or not in one place. */
typedef const void *memory_at_fn(void *ctx, taddr_t addr, size_t size);

/* The memory of a process. */
struct memory_source {
	memory_read_fn *read;
	memory_gather_fn *gather;   /* NULL: each is read */
	memory_scatter_fn *scatter; /* NULL: likewise */
	void *ctx;
	/* what the files of the program and its libraries have there; NULL = unknown */
	memory_read_fn *read_file;
	void *file_ctx;
	memory_at_fn *at;           /* NULL: it is in no memory of ours */
};

/* Of the process *@pid, which must outlive it; without files. */
struct memory_source memory_of_process(pid_t *pid);

#define MEMORY_LINES_MIN 1024u
#define MEMORY_LINES_MAX 8192u
#define MEMORY_WORDS 64u

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
/* Where @size bytes at @addr are in our memory; NULL: they are not, or not known to be. */
const void *memory_at(const struct inspect_memory *m, taddr_t addr, size_t size);
bool memory_read_word(struct inspect_memory *m, taddr_t addr, uint64_t *out);
/*
 * Calls fn(ctx, address, words from there on) for each word on pages of @range that were written,
 * until it is true: then returns true. At least MEMORY_WORDS words may be read there; behind the
 * range they are zeros.
 */
typedef bool memory_word_fn(void *ctx, taddr_t at, const uint64_t *word);
bool memory_find_word(struct inspect_memory *m, const struct addr_range *range, memory_word_fn *fn,
		      void *ctx);
/* Reads at many addresses at once, none of which is in a cache yet. */
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
