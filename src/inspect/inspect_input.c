/* See inspect_input.h. */
#include "inspect/inspect_input.h"

#include <string.h>

#define PAGE ((taddr_t)PAGE_SIZE_MIN)

void inspect_add_segment(struct inspect_input *in, taddr_t start, taddr_t end)
{
	const struct maps *maps = &in->resident.maps;
	struct inspect_segment s = {ROUND_DOWN(start, PAGE), ROUND_UP(end, PAGE), false};
	size_t at = vec_search(&in->segments, e, e->start < s.start);

	for (size_t i = vec_search(&maps->list, e, e->end <= s.start); i < maps->list.count; i++) {
		if (maps->list.data[i].start >= s.end)
			break;
		s.is_write |= maps->list.data[i].is_write;
	}
	(void)vec_add(&in->segments);
	memmove(&in->segments.data[at + 1], &in->segments.data[at],
		(in->segments.count - 1 - at) * sizeof(s));
	in->segments.data[at] = s;
}

bool inspect_is_object(const struct inspect_input *in, const struct map *m)
{
	for (size_t i = 0; i < in->segments.count; i++)
		if (in->segments.data[i].start < m->end && in->segments.data[i].end > m->start)
			return true;
	return false;
}

void inspect_input_deinit(struct inspect_input *in)
{
	resident_deinit(&in->resident);
	vec_deinit(&in->threads);
	vec_deinit(&in->segments);
	vec_deinit(&in->profiler);
	vec_deinit(&in->registers);
}
