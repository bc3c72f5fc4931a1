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
#ifndef PTMEM_INSPECT_READ_AHEAD_H
#define PTMEM_INSPECT_READ_AHEAD_H

#include <pthread.h>

#include "base/types.h"

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

#endif
