/* Two caches: single pages for lists, whose elements are scattered, and one window for walks. */
#include "inspect/memory.h"

#include <string.h>

#include "base/alloc.h"

#define NO_LINE UINT64_MAX

void memory_init(struct inspect_memory *m, const struct resident *pages,
		 const struct memory_source *source)
{
	*m = (struct inspect_memory){
		.pages = pages, .source = *source, .window.start = NO_LINE,
		.before.start = NO_LINE};
	m->line_addr = xmalloc(MEMORY_LINES * sizeof(*m->line_addr));
	m->line = xmalloc((size_t)MEMORY_LINES * PAGE_SIZE_MIN);
	m->window.data = xmalloc(MEMORY_WINDOW);
	m->before.data = xmalloc(MEMORY_WINDOW);
	m->peeked = xmalloc(MEMORY_PEEK_MAX);
	for (size_t i = 0; i < MEMORY_LINES; i++)
		m->line_addr[i] = NO_LINE;
}

void memory_deinit(struct inspect_memory *m)
{
	free(m->line_addr);
	free(m->line);
	free(m->window.data);
	free(m->before.data);
	free(m->peeked);
}

/* Copies [@addr, @addr + @size) to @buf; bytes that cannot be read become zeros. */
static void fill(struct inspect_memory *m, taddr_t addr, uint8_t *buf, size_t size)
{
	memset(buf, 0, size);
	for (size_t i = resident_find(m->pages, addr); i < m->pages->list.count; i++) {
		const struct page_range *r = &m->pages->list.data[i];
		taddr_t start = MAX(r->start, addr), end = MIN(r->end, addr + size);

		if (start >= end)
			break;
		ssize_t n = m->source.read(m->source.ctx, start, buf + (start - addr), end - start);

		m->bytes += n > 0 ? (uint64_t)n : 0;
	}
}

/*
 * A page of a file that has not been read or written yet is as it is in the file. Anonymous memory
 * is zeros then, whatever object seems to be around it: some map parts of themselves twice.
 */
static void fill_page(struct inspect_memory *m, taddr_t start, uint8_t *line)
{
	size_t i = resident_find(m->pages, start);
	bool is_there = i < m->pages->list.count && m->pages->list.data[i].start <= start;
	const struct map *map = is_there ? NULL : maps_find(&m->pages->maps, start);

	if (!map || *map->path != '/' || !m->source.read_file) {
		fill(m, start, line, PAGE_SIZE_MIN);
		return;
	}
	memset(line, 0, PAGE_SIZE_MIN);
	m->source.read_file(m->source.file_ctx, start, line, PAGE_SIZE_MIN);
}

static const uint8_t *get_line(struct inspect_memory *m, taddr_t addr)
{
	taddr_t start = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
	size_t i = start / PAGE_SIZE_MIN % MEMORY_LINES;
	uint8_t *line = m->line + i * PAGE_SIZE_MIN;

	if (m->line_addr[i] != start) {
		fill_page(m, start, line);
		m->line_addr[i] = start;
	}
	return line;
}

bool memory_read(struct inspect_memory *m, taddr_t addr, void *buf, size_t size)
{
	uint8_t *to = buf;

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

void memory_gather(struct inspect_memory *m, const taddr_t *addr, size_t count, size_t each,
		   void *buf)
{
	m->source.gather(m->source.ctx, addr, count, each, buf);
	m->bytes += count * each;
}

static const uint8_t *find_in(const struct memory_window *w, taddr_t addr, size_t size)
{
	bool is_in = w->start != NO_LINE && addr >= w->start &&
		     addr - w->start <= MEMORY_WINDOW - size;

	return is_in ? w->data + (addr - w->start) : NULL;
}

/* Moves the window to @addr. It overlaps the one before, where that ends just there. */
static void move_window(struct inspect_memory *m, taddr_t addr)
{
	struct memory_window before = m->before;
	taddr_t start = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);

	if (m->window.start != NO_LINE && start == m->window.start + MEMORY_WINDOW)
		start -= PAGE_SIZE_MIN;
	m->before = m->window;
	m->window = before;
	m->window.start = start;
	fill(m, start, m->window.data, MEMORY_WINDOW);
}

bool memory_read_ahead(struct inspect_memory *m, taddr_t addr, void *buf, size_t size)
{
	const uint8_t *found = find_in(&m->window, addr, size);

	if (!found) {
		move_window(m, addr);
		found = m->window.data + (addr - m->window.start);
	}
	memcpy(buf, found, size);
	return true;
}

const void *memory_peek(struct inspect_memory *m, taddr_t addr, size_t size)
{
	const uint8_t *found = find_in(&m->window, addr, size);

	if (!found)
		found = find_in(&m->before, addr, size);
	if (found)
		return found;
	if (find_in(&m->window, addr, 1) || find_in(&m->before, addr, 1)) {
		fill(m, addr, m->peeked, size);
		return m->peeked;
	}
	move_window(m, addr);
	return m->window.data + (addr - m->window.start);
}
