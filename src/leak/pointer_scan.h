/*
 * The part of a leak check for which the target must stand still: its memory is
 * read once, in order, and what may point to a block is kept.
 *
 *	memory -> aligned words -> those that lie near a block -> pages of {mask, values}
 *
 * "Near" means: in the same 2 MiB as a block. What is kept is much less than what is
 * read, and all further work happens after the target goes on.
 */
#ifndef PTMEM_LEAK_POINTER_SCAN_H
#define PTMEM_LEAK_POINTER_SCAN_H

#include <sys/types.h>

#include "base/types.h"
#include "base/vec.h"

/* The words of one page that were kept. */
struct pointer_page {
	taddr_t addr;
	size_t first;     /* of its values; the next page's are behind them */
	uint64_t mask[PAGE_SIZE_MIN / sizeof(uint64_t) / 64]; /* a bit for each word */
};

struct pointer_scan {
	VEC(struct pointer_page) pages; /* in the order they were read */
	VEC(uint64_t) values;
	/* bytes mapped for values, which are not on the heap then; 0 = none */
	size_t reserved;
	uint64_t *near;                 /* a bit for each 2 MiB of address space */
	taddr_t low, high;              /* of all blocks */
	uint64_t bytes, unreadable;     /* memory that was read; that could not be */
	uint8_t *buffer;
};

void pointer_scan_init(struct pointer_scan *s);
void pointer_scan_deinit(struct pointer_scan *s);

/* Words that point to [start, end) or near it shall be kept; before any memory is read. */
void pointer_scan_add_target(struct pointer_scan *s, taddr_t start, taddr_t end);

/* Whether words that point into [start, end) could be kept. */
bool pointer_scan_has_target_near(const struct pointer_scan *s, taddr_t start, taddr_t end);

/*
 * Makes room for what @bytes of memory may hold, before any of it is read: no more will be
 * read. In large pages where there are some: taking memory page by page takes longer than reading.
 */
void pointer_scan_reserve(struct pointer_scan *s, uint64_t bytes);

/* Reads at most @size bytes at @addr: the number read from the start, <= 0 if none. */
typedef ssize_t pointer_read_fn(void *ctx, taddr_t addr, void *buf, size_t size);

/* Reads [start, end). What cannot be read is left out by the page. */
void pointer_scan_range(struct pointer_scan *s, taddr_t start, taddr_t end, pointer_read_fn *read,
			void *ctx);

#endif
