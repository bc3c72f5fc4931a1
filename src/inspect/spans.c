/* A sorted array. See spans.h. */
#include "inspect/spans.h"

#include <string.h>

size_t spans_find(const struct spans *s, taddr_t addr)
{
	return vec_search(&s->list, e, e->end <= addr);
}

static void insert(struct spans *s, size_t at, const struct span *span)
{
	(void)vec_add(&s->list);
	memmove(&s->list.data[at + 1], &s->list.data[at],
		(s->list.count - 1 - at) * sizeof(*s->list.data));
	s->list.data[at] = *span;
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
