/* Two caches: single pages for lists, whose elements are scattered, and one window for walks. */
#include "inspect/memory.h"

#include <string.h>

#include "base/alloc.h"

#define NO_LINE UINT64_MAX

void memory_init(struct inspect_memory *m, const struct resident *pages,
		 const struct memory_source *source)
{
	*m = (struct inspect_memory){
		.pages = pages, .source = *source, .window_start = NO_LINE};
	m->line_addr = xmalloc(MEMORY_LINES * sizeof(*m->line_addr));
	m->line = xmalloc((size_t)MEMORY_LINES * PAGE_SIZE_MIN);
	m->window = xmalloc(MEMORY_WINDOW);
	for (size_t i = 0; i < MEMORY_LINES; i++)
		m->line_addr[i] = NO_LINE;
}

void memory_deinit(struct inspect_memory *m)
{
	free(m->line_addr);
	free(m->line);
	free(m->window);
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

static const uint8_t *get_line(struct inspect_memory *m, taddr_t addr)
{
	taddr_t start = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
	size_t i = start / PAGE_SIZE_MIN % MEMORY_LINES;
	uint8_t *line = m->line + i * PAGE_SIZE_MIN;

	if (m->line_addr[i] != start) {
		fill(m, start, line, PAGE_SIZE_MIN);
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

bool memory_read_ahead(struct inspect_memory *m, taddr_t addr, void *buf, size_t size)
{
	if (addr < m->window_start || addr + size > m->window_start + MEMORY_WINDOW ||
	    m->window_start == NO_LINE) {
		m->window_start = ROUND_DOWN(addr, (taddr_t)PAGE_SIZE_MIN);
		fill(m, m->window_start, m->window, MEMORY_WINDOW);
	}
	memcpy(buf, m->window + (addr - m->window_start), size);
	return true;
}
