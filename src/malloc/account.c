/* Sums by row, and a sorted array of the parts of the address space that have one. */
#include "malloc/account.h"

#include <string.h>

const char *const inspect_row_name[ROW_COUNT] = {
	[ROW_LIVE] = "live", [ROW_MMAPPED] = "mmapped", [ROW_TCACHE] = "tcache",
	[ROW_FASTBIN] = "fastbins", [ROW_UNSORTED] = "unsorted", [ROW_BIN] = "bins",
	[ROW_TOP] = "top", [ROW_FREE_PAGES] = "free_pages",
	[ROW_OWN] = "allocator", [ROW_UNKNOWN_HEAP] = "unknown_heap",
	[ROW_PYTHON_LIVE] = "python_live", [ROW_PYTHON_FREE] = "python_free",
	[ROW_PYTHON_POOLS] = "python_pools", [ROW_PYTHON_OWN] = "python_own",
	[ROW_STACK] = "stacks", [ROW_STACK_BEYOND] = "stacks_beyond", [ROW_TLS] = "tls",
	[ROW_DATA] = "data", [ROW_TEXT] = "text", [ROW_FILE] = "files", [ROW_SHARED] = "shared",
	[ROW_PROFILER] = "profiler", [ROW_ANONYMOUS] = "anonymous",
};

const char *const inspect_row_text[ROW_COUNT] = {
	[ROW_LIVE] = "live heap blocks",
	[ROW_MMAPPED] = "live blocks with mappings of their own",
	[ROW_TCACHE] = "free, in threads' caches (tcache)",
	[ROW_FASTBIN] = "free, in fastbins",
	[ROW_UNSORTED] = "free, in unsorted lists",
	[ROW_BIN] = "free, in bins",
	[ROW_TOP] = "free, at the ends of arenas (top)",
	[ROW_FREE_PAGES] = "free, whole pages",
	[ROW_OWN] = "allocator's headers, padding, descriptions",
	[ROW_UNKNOWN_HEAP] = "heap that could not be followed",
	[ROW_PYTHON_LIVE] = "live blocks of Python's allocator",
	[ROW_PYTHON_FREE] = "free in Python's allocator, among live blocks",
	[ROW_PYTHON_POOLS] = "free in Python's allocator, whole pools",
	[ROW_PYTHON_OWN] = "Python's allocator: headers, padding",
	[ROW_STACK] = "thread stacks, in use",
	[ROW_STACK_BEYOND] = "thread stacks, touched but not in use",
	[ROW_TLS] = "thread variables (TLS)",
	[ROW_DATA] = "data of program and libraries",
	[ROW_TEXT] = "code and constants of program and libraries",
	[ROW_FILE] = "mapped files",
	[ROW_SHARED] = "shared memory",
	[ROW_PROFILER] = "mapped by ptmem",
	[ROW_ANONYMOUS] = "other anonymous mappings",
};

void account_init(struct account *a, const struct resident *pages)
{
	*a = (struct account){.pages = pages};
}

/* The first range that ends above @addr. */
static size_t find(struct account *a, taddr_t addr)
{
	const struct page_run *list = a->pages->list.data;
	size_t count = a->pages->list.count;

	for (int i = 0; i < 4 && a->at < count && list[a->at].end <= addr; i++)
		a->at++;
	bool is_found = (a->at == count || list[a->at].end > addr) &&
			(a->at == 0 || list[a->at - 1].end <= addr);

	if (!is_found)
		a->at = resident_find(a->pages, addr);
	return a->at;
}

static void add_part(struct inspect_bytes *b, uint32_t flags, uint64_t size)
{
	if (flags & PAGE_SWAPPED)
		b->swapped += size;
	else
		b->resident += size;
}

struct inspect_bytes account_count(struct account *a, taddr_t start, taddr_t end)
{
	struct inspect_bytes sum = {0};

	for (size_t i = find(a, start); i < a->pages->list.count; i++) {
		const struct page_run *r = &a->pages->list.data[i];

		if (r->start >= end)
			break;
		add_part(&sum, r->flags, MIN(r->end, end) - MAX(r->start, start));
	}
	return sum;
}

void account_add_parts(struct account *a, taddr_t start, taddr_t end, enum inspect_row row,
		       enum inspect_row file_row)
{
	for (size_t i = find(a, start); i < a->pages->list.count; i++) {
		const struct page_run *r = &a->pages->list.data[i];

		if (r->start >= end)
			break;
		add_part(&a->row[r->flags & PAGE_OF_FILE ? file_row : row], r->flags,
			 MIN(r->end, end) - MAX(r->start, start));
	}
}

/* A sorted array. See account.h. */

size_t spans_find(const struct spans *s, taddr_t addr)
{
	return vec_search(&s->list, e, e->end <= addr);
}

static void insert(struct spans *s, size_t at, const struct span *span)
{
	*vec_insert(&s->list, at) = *span;
}

void spans_add(struct spans *s, taddr_t start, taddr_t end, enum inspect_row row)
{
	size_t at = spans_find(s, start);

	while (start < end) {
		bool is_last = at == s->list.count || s->list.data[at].start >= end;
		taddr_t part = is_last ? end : s->list.data[at].start;

		if (start < part) {
			const struct span span = {start, part, row, row, SPAN_NO_HEAP};

			insert(s, at++, &span);
		}
		if (is_last)
			return;
		start = MAX(start, s->list.data[at].end);
		at++;
	}
}

void spans_add_heap(struct spans *s, taddr_t start, taddr_t end, uint32_t heap)
{
	size_t at = spans_find(s, start);
	const struct span span = {start, end, ROW_OWN, ROW_OWN, heap};

	if (start < end && (at == s->list.count || s->list.data[at].start >= end))
		insert(s, at, &span);
}

void spans_deinit(struct spans *s)
{
	vec_deinit(&s->list);
}
