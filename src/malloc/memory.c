/*
 * Two caches, single pages for lists, whose elements are scattered, and windows for walks, which
 * other threads fill ahead.
 */
#include "malloc/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"

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
	uint32_t wanted = parallel_count(READ_HELPERS + 1) - 1;

	while (r->helpers < wanted && parallel_start(&r->helper[r->helpers], help, r))
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

/* The number of the window after the current one that begins at @start; 0 if no thread fills it. */
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

/* Two caches: single pages for lists, whose elements are scattered, and windows for walks. */

#define NO_LINE UINT64_MAX
#define LINES_AHEAD 32u
#define SMALL 512u        /* so much of a page is read without the rest */
#define PAGES_PER_LINE 64u /* of the process: 1.6 % of its memory */

/*
 * Copies [@addr, @addr + @size) to @buf; bytes that cannot be read become zeros. Returns how many
 * were read.
 */
static uint64_t fill(const struct inspect_memory *m, taddr_t addr, uint8_t *buf, size_t size)
{
	uint64_t bytes = 0;
	size_t done = 0;

	for (size_t i = resident_find(m->pages, addr); i < m->pages->list.count; i++) {
		const struct page_run *r = &m->pages->list.data[i];
		taddr_t start = MAX(r->start, addr), end = MIN(r->end, addr + size);

		if (start >= end)
			break;
		memset(buf + done, 0, start - addr - done);
		ssize_t n = m->source.read(m->source.ctx, start, buf + (start - addr), end - start);

		done = start - addr + (n > 0 ? (size_t)n : 0);
		bytes += n > 0 ? (uint64_t)n : 0;
	}
	memset(buf + done, 0, size - done);
	return bytes;
}

static uint64_t read_window(void *memory, taddr_t addr, uint8_t *buf, size_t size)
{
	return fill(memory, addr, buf, size);
}

static uint32_t count_lines(const struct resident *pages)
{
	uint64_t wanted = (pages->resident + pages->swapped) / PAGE_SIZE_MIN / PAGES_PER_LINE;
	uint32_t lines = MEMORY_LINES_MIN;

	while (lines < MEMORY_LINES_MAX && lines * 2 <= wanted)
		lines *= 2;
	return lines;
}

void memory_init(struct inspect_memory *m, const struct resident *pages,
		 const struct memory_source *source)
{
	*m = (struct inspect_memory){.pages = pages, .source = *source, .filled = NO_LINE};
	m->lines = count_lines(pages);
	m->line_addr = xmalloc(m->lines * sizeof(*m->line_addr));
	m->line = xmalloc((size_t)m->lines * PAGE_SIZE_MIN);
	read_ahead_init(&m->ahead, read_window, m);
	for (size_t i = 0; i < m->lines; i++)
		m->line_addr[i] = NO_LINE;
}

void memory_deinit(struct inspect_memory *m)
{
	free(m->line_addr);
	free(m->line);
	read_ahead_deinit(&m->ahead);
}

/*
 * A page of a file that has not been read or written yet, or is not in a copy, is as it is in the
 * file. Anonymous memory is zeros then, whatever object seems to be around it: some map parts of
 * themselves twice.
 */
static void fill_page(struct inspect_memory *m, taddr_t start, uint8_t *line)
{
	uint64_t got = fill(m, start, line, PAGE_SIZE_MIN);
	const struct map *map = got == 0 ? maps_find(&m->pages->maps, start) : NULL;

	m->bytes += got;
	if (map && *map->path == '/' && m->source.read_file)
		m->source.read_file(m->source.file_ctx, start, line, PAGE_SIZE_MIN);
}

static size_t line_of(const struct inspect_memory *m, taddr_t page)
{
	return page / PAGE_SIZE_MIN & (m->lines - 1);
}

/*
 * How many pages from @start on are there and have lines that follow one another, twice as many as
 * before at most.
 */
static size_t count_run(const struct inspect_memory *m, taddr_t start)
{
	size_t i = resident_find(m->pages, start);
	size_t rest = m->lines - line_of(m, start);

	if (i == m->pages->list.count || m->pages->list.data[i].start > start)
		return 1;
	rest = MIN(MIN(m->run * 2, LINES_AHEAD), rest);
	return MIN((m->pages->list.data[i].end - start) / PAGE_SIZE_MIN, rest);
}

/* Fills the line of @start; where pages are read in ascending order, those after it, too. */
static void fill_lines(struct inspect_memory *m, taddr_t start)
{
	size_t at = line_of(m, start), size = PAGE_SIZE_MIN;
	uint8_t *line = m->line + at * PAGE_SIZE_MIN;

	if (start == m->filled)
		size *= count_run(m, start);
	for (size_t i = 0; i < size / PAGE_SIZE_MIN; i++)
		m->line_addr[at + i] = NO_LINE;
	uint64_t got = size > PAGE_SIZE_MIN ? fill(m, start, line, size) : 0;

	m->bytes += got;
	if (got < size) {
		size = PAGE_SIZE_MIN;
		fill_page(m, start, line);
	}
	m->filled = start + size;
	m->run = size / PAGE_SIZE_MIN;
	for (taddr_t page = start; page < m->filled; page += PAGE_SIZE_MIN)
		m->line_addr[at++] = page;
}

static const uint8_t *get_line(struct inspect_memory *m, taddr_t addr)
{
	taddr_t start = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
	size_t i = line_of(m, start);

	if (m->line_addr[i] != start)
		fill_lines(m, start);
	return m->line + i * PAGE_SIZE_MIN;
}

const void *memory_at(const struct inspect_memory *m, taddr_t addr, size_t size)
{
	return m->source.at ? m->source.at(m->source.ctx, addr, size) : NULL;
}

bool memory_read(struct inspect_memory *m, taddr_t addr, void *buf, size_t size)
{
	uint8_t *to = buf;

	const void *here = size <= SMALL ? memory_at(m, addr, size) : NULL;

	if (here) {
		memcpy(buf, here, size);
		m->bytes += size;
		return true;
	}
	if (addr + size < addr || !maps_find(&m->pages->maps, addr))
		return false;
	while (size > 0) {
		size_t offset = addr % PAGE_SIZE_MIN, n = MIN(size, PAGE_SIZE_MIN - offset);

		memcpy(to, get_line(m, addr) + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}

bool memory_read_word(struct inspect_memory *m, taddr_t addr, uint64_t *out)
{
	return memory_read(m, addr, out, sizeof(*out));
}

bool memory_find_word(struct inspect_memory *m, const struct addr_range *range, memory_word_fn *fn,
		      void *ctx)
{
	uint64_t word[PAGE_WORDS + MEMORY_WORDS];

	for (taddr_t page = resident_next(m->pages, range->start); page < range->end;
	     page = resident_next(m->pages, page + PAGE_SIZE_MIN)) {
		size_t size = MIN(sizeof(word), range->end - page);

		memset((uint8_t *)word + size, 0, sizeof(word) - size);
		if (!memory_read(m, page, word, size))
			return false;
		for (size_t i = 0; i < PAGE_WORDS; i++)
			if (fn(ctx, page + i * sizeof(*word), &word[i]))
				return true;
	}
	return false;
}

void memory_gather(struct inspect_memory *m, const taddr_t *addr, size_t count, size_t each,
		   void *buf)
{
	if (m->source.gather) {
		m->source.gather(m->source.ctx, addr, count, each, buf);
	} else {
		memset(buf, 0, count * each);
		for (size_t i = 0; i < count; i++)
			m->source.read(m->source.ctx, addr[i], (uint8_t *)buf + i * each, each);
	}
	m->bytes += count * each;
}

const void *memory_move(struct inspect_memory *m, taddr_t addr, size_t size)
{
	read_ahead_move(&m->ahead, addr);
	return read_ahead_find(&m->ahead, addr, size);
}

/* -- of a process -- */

static ssize_t read_process(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec here = {buf, size}, there = {(void *)(uintptr_t)addr, size};

	return process_vm_readv(*(pid_t *)ctx, &here, 1, &there, 1, 0);
}

static ssize_t scatter_process(void *ctx, const struct iovec *to, const struct iovec *from,
			       size_t count)
{
	return process_vm_readv(*(pid_t *)ctx, to, count, from, count, 0);
}

#define GATHER_MAX 512u

static void gather_process(void *ctx, const taddr_t *addr, size_t count, size_t each, void *buf)
{
	struct iovec there[GATHER_MAX];

	memset(buf, 0, count * each);
	for (size_t i = 0; i < count;) {
		size_t n = MIN(count - i, (size_t)GATHER_MAX);
		struct iovec here = {(char *)buf + i * each, n * each};

		for (size_t k = 0; k < n; k++)
			there[k] = (struct iovec){(void *)(uintptr_t)addr[i + k], each};
		ssize_t got = process_vm_readv(*(pid_t *)ctx, &here, 1, there, n, 0);

		/* ends at the first page that cannot be read, which is skipped */
		i += got > 0 ? MAX((size_t)got / each, (size_t)1) : 1;
	}
}

struct memory_source memory_of_process(pid_t *pid)
{
	return (struct memory_source){.read = read_process, .gather = gather_process,
				      .scatter = scatter_process, .ctx = pid};
}
