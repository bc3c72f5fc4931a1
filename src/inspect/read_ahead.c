/* See read_ahead.h. */
#include "inspect/read_ahead.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/lanes.h"

#define ROOM (READ_WINDOW + READ_BEYOND)

static struct read_window *window_at(struct read_ahead *r, uint64_t number)
{
	return &r->window[number % READ_WINDOWS];
}

void read_ahead_init(struct read_ahead *r, read_window_fn *fill, void *ctx)
{
	*r = (struct read_ahead){.fill = fill, .ctx = ctx, .before = 0, .current = 1, .claimed = 1};
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->room, NULL);
	pthread_cond_init(&r->filled, NULL);
	for (size_t i = 0; i < READ_WINDOWS; i++)
		r->window[i] = (struct read_window){.start = READ_NOWHERE, .data = xmalloc(ROOM)};
}

void read_ahead_deinit(struct read_ahead *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_ended = true;
	pthread_cond_broadcast(&r->room);
	pthread_mutex_unlock(&r->lock);
	for (uint32_t i = 0; i < r->helpers; i++)
		pthread_join(r->helper[i], NULL);
	pthread_cond_destroy(&r->room);
	pthread_cond_destroy(&r->filled);
	pthread_mutex_destroy(&r->lock);
	for (size_t i = 0; i < READ_WINDOWS; i++)
		free(r->window[i].data);
}

/* -- with the lock -- */

static bool may_claim(const struct read_ahead *r)
{
	return r->is_sequential && r->claimed + 1 < r->before + READ_WINDOWS;
}

/* Fills the window after the last claimed one. */
static void fill_next(struct read_ahead *r)
{
	taddr_t start = window_at(r, r->claimed)->start + READ_WINDOW;
	struct read_window *w = window_at(r, ++r->claimed);

	*w = (struct read_window){.start = start, .data = w->data};
	r->filling++;
	pthread_mutex_unlock(&r->lock);
	uint64_t bytes = r->fill(r->ctx, start, w->data, ROOM);

	pthread_mutex_lock(&r->lock);
	w->bytes = bytes;
	w->is_filled = true;
	r->filling--;
	pthread_cond_signal(&r->filled);
}

/* -- helpers -- */

static void *help(void *ctx)
{
	struct read_ahead *r = ctx;

	pthread_mutex_lock(&r->lock);
	while (!r->is_ended) {
		if (may_claim(r))
			fill_next(r);
		else
			pthread_cond_wait(&r->room, &r->lock);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void start_helpers(struct read_ahead *r)
{
	uint32_t wanted = lanes_for(READ_HELPERS + 1) - 1;

	while (r->helpers < wanted && lane_start(&r->helper[r->helpers], help, r))
		r->helpers++;
}

/* -- the reader -- */

/* Makes the window @number, which was claimed, the current one. */
static void take(struct read_ahead *r, uint64_t number)
{
	struct read_window *w = window_at(r, number);

	r->before = r->current;
	r->current = number;
	/* waking them for each window would take as long as filling it */
	if (r->claimed - r->current < READ_WINDOWS / 2)
		pthread_cond_broadcast(&r->room);
	while (!w->is_filled)
		if (may_claim(r))
			fill_next(r);
		else
			pthread_cond_wait(&r->filled, &r->lock);
	r->bytes += w->bytes;
}

/* The number of the window that begins at @start, above the current one; 0 if nobody has claimed
 * it. */
static uint64_t find_claimed(struct read_ahead *r, taddr_t start)
{
	for (uint64_t i = r->current + 1; i <= r->claimed; i++)
		if (window_at(r, i)->start == start)
			return i;
	return 0;
}

/* Drops what was read ahead, and reads the window at @start. */
static void jump(struct read_ahead *r, taddr_t start)
{
	r->is_sequential = false;
	while (r->filling)
		pthread_cond_wait(&r->filled, &r->lock);
	r->claimed = r->current;
	struct read_window *w = window_at(r, ++r->claimed);

	*w = (struct read_window){.start = start, .data = w->data};
	w->bytes = r->fill(r->ctx, start, w->data, ROOM);
	w->is_filled = true;
	take(r, r->claimed);
}

void read_ahead_move(struct read_ahead *r, taddr_t addr)
{
	taddr_t start = ROUND_DOWN(addr, (taddr_t)READ_WINDOW);

	pthread_mutex_lock(&r->lock);
	bool is_next = start == window_at(r, r->current)->start + READ_WINDOW;
	uint64_t number = find_claimed(r, start);

	if (number) {
		take(r, number);
	} else {
		jump(r, start);
		r->is_sequential = is_next;
		if (is_next && r->helpers == 0)
			start_helpers(r);
	}
	pthread_mutex_unlock(&r->lock);
}
