/* Parts are recognized by chunks that lead to their end. See glibc_main.h. */
#include "inspect/glibc_main.h"

#include <string.h>

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define ALIGNMENT 16u
#define LAST (16u | GLIBC_IS_BEFORE_USED) /* a header at the end of a part, but the first of them */
#define CHUNKS_MAX (UINT64_C(1) << 27) /* that are looked at */

struct search {
	struct inspect_memory *memory;
	struct arenas *found;
	taddr_t top;
	uint64_t chunks;        /* that may still be looked at */
	bool has_top;
};

/* The mappings around @addr that follow one another and have the same name. */
static struct glibc_range mapped_around(const struct maps *maps, taddr_t addr)
{
	size_t at = vec_search(&maps->list, e, e->end <= addr), last = at;
	const struct map *m = maps->list.data;

	if (at == maps->list.count || m[at].start > addr)
		return (struct glibc_range){0};
	while (at > 0 && m[at - 1].end == m[at].start && strcmp(m[at - 1].path, m[at].path) == 0)
		at--;
	while (last + 1 < maps->list.count && m[last + 1].start == m[last].end &&
	       strcmp(m[last + 1].path, m[last].path) == 0)
		last++;
	return (struct glibc_range){m[at].start, m[last].end};
}

static uint64_t head_at(struct search *s, taddr_t chunk)
{
	uint64_t head;

	memcpy(&head, memory_peek(s->memory, chunk + sizeof(head), sizeof(head)), sizeof(head));
	return head;
}

/*
 * Where the part ends whose last headers begin at @at; 0 if none are there. They are two, or three
 * where less than a chunk was left.
 */
static taddr_t end_at(struct search *s, taddr_t at, taddr_t limit)
{
	uint32_t count = 0;

	for (; count < 3 && limit - at >= GLIBC_HEADER; count++, at += GLIBC_HEADER) {
		uint64_t head = head_at(s, at);

		if (head != LAST && (count > 0 || (head | GLIBC_IS_BEFORE_USED) != LAST))
			break;
	}
	return count >= 2 ? at : 0;
}

/* Where the part ends whose first chunk is at @start, before @limit; 0 = there is none. */
static taddr_t follow(struct search *s, taddr_t start, taddr_t limit)
{
	for (taddr_t at = start; limit - at >= GLIBC_HEADER && s->chunks > 0; s->chunks--) {
		uint64_t head = head_at(s, at), size = head & ~(uint64_t)GLIBC_FLAGS;

		if (size == GLIBC_HEADER && at > start)
			return end_at(s, at, limit);
		if (size < GLIBC_CHUNK_MIN || size % ALIGNMENT || size > limit - at ||
		    head & (GLIBC_IS_MMAPPED | GLIBC_IS_IN_HEAP) ||
		    (at == start && !(head & GLIBC_IS_BEFORE_USED)))
			return 0;
		at += size;
		if (at - size == s->top)
			return at;
	}
	return 0;
}

static void add_part(struct search *s, taddr_t start, taddr_t end)
{
	bool has_top = s->top >= start && s->top < end;

	*vec_add(&s->found->heaps) = (struct arena_heap){
		.start = start, .end = end, .top = has_top ? s->top : 0, .is_main = true};
	s->has_top |= has_top;
}

/* -- from brk -- */

static void search_brk(struct search *s, const struct map *m)
{
	taddr_t at = m->start;

	while (m->end - at >= GLIBC_CHUNK_MIN && s->chunks > 0) {
		taddr_t end = follow(s, at, m->end);

		if (end)
			add_part(s, at, end);
		at = ROUND_UP(end ? end : at + 1, (taddr_t)ALIGNMENT);
	}
}

/* -- from mmap -- */

static bool is_in_heap(const struct search *s, taddr_t addr)
{
	for (size_t i = 0; i < s->found->heaps.count; i++)
		if (addr >= s->found->heaps.data[i].start && addr < s->found->heaps.data[i].end)
			return true;
	return false;
}

static void search_pages(struct search *s, const struct page_range *r, taddr_t limit,
			 taddr_t *at_io)
{
	for (taddr_t at = MAX(*at_io, r->start); at < r->end && s->chunks > 0;) {
		taddr_t end = is_in_heap(s, at) ? 0 : follow(s, at, limit);
		bool is_part = end && end % PAGE == 0;

		if (is_part)
			add_part(s, at, end);
		at = is_part ? end : at + PAGE;
		*at_io = at;
	}
}

static void search_mapped(struct search *s)
{
	const struct resident *pages = s->memory->pages;
	taddr_t at = 0;

	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_range *r = &pages->list.data[i];
		const struct map *m = maps_find(&pages->maps, r->start);

		if (m && m->is_write && !m->is_shared &&
		    (!*m->path || strncmp(m->path, "[anon", 5) == 0))
			search_pages(s, r, mapped_around(&pages->maps, r->start).end, &at);
	}
}

/* -- the arena -- */

static void find_parts(struct inspect_memory *m, struct arenas *found, struct glibc *g)
{
	struct search s = {.memory = m, .found = found, .top = g->arenas.data[0].top,
			   .chunks = CHUNKS_MAX};
	const struct maps *maps = &m->pages->maps;
	size_t kept = 0;

	for (size_t i = 0; i < found->heaps.count; i++)
		if (!found->heaps.data[i].is_main)
			found->heaps.data[kept++] = found->heaps.data[i];
	found->heaps.count = kept;
	for (size_t i = 0; i < maps->list.count; i++)
		if (strcmp(maps->list.data[i].path, "[heap]") == 0)
			search_brk(&s, &maps->list.data[i]);
	search_mapped(&s);
	g->lost_heaps += !s.has_top;
}

/*
 * The size of the top chunk, where the main heap's end is from, may be overwritten. The heap is
 * then all memory up to the program break, and the walk fails at the top.
 */
static void repair(const struct maps *maps, struct arenas *found, struct glibc *g)
{
	const struct glibc_arena *a = g->arenas.data;
	struct glibc_range r = mapped_around(maps, a->top);
	size_t i = 0;

	while (i < found->heaps.count && found->heaps.data[i].top != a->top)
		i++;
	struct arena_heap *h = i < found->heaps.count ? &found->heaps.data[i] : NULL;

	if (h && h->end % PAGE == 0)
		return;
	if (r.end == 0) {
		g->lost_heaps++;
		return;
	}
	if (!h)
		h = vec_add(&found->heaps);
	*h = (struct arena_heap){
		.start = MAX(r.start, ROUND_UP(r.end - MIN(r.end, a->system_bytes), UINT64_C(16))),
		.end = r.end, .top = a->top, .is_main = true};
}

void glibc_main_check(struct inspect_memory *m, struct arenas *found, struct glibc *g)
{
	const struct glibc_arena *a = g->arenas.data;

	if (g->arenas.count == 0 || !a->is_main || a->system_bytes == 0)
		return;
	if (a->is_contiguous)
		repair(&m->pages->maps, found, g);
	else
		find_parts(m, found, g);
}
