/* See heap_sample.h. */
#include "session/heap_sample.h"

#include "base/alloc.h"
#include "base/text.h"
#include "profile/profile.h"

void heap_sample_init(struct heap_sample *h, uint64_t interval, uint64_t seed)
{
	*h = (struct heap_sample){.interval = interval, .now = interval, .seed = seed};
	if (interval)
		byte_sampler_init(&h->sampler, interval, seed);
}

static void count_call(struct heap_sample *h, const struct event *ev)
{
	if (ev->function >= HEAP_FUNCTION_COUNT || ev->is_inner)
		return;
	struct call_total *total = &h->totals.function[ev->function];

	total->calls++;
	if (ev->kind != EVENT_FREE && ev->size <= PTRDIFF_MAX)
		total->bytes += ev->size;
}

static bool keep_realloc(struct heap_sample *h, const struct profile *p, bool is_chosen,
			 struct event *ev)
{
	bool was_sample = ev->old_addr && profile_is_moving(p, ev->thread, ev->old_addr);
	bool is_failed = !ev->addr && ev->size > 0;
	bool is_sample =
		ev->addr && (is_chosen || byte_sampler_take(&h->sampler, ev->size));

	if (was_sample && !is_sample && !is_failed) {
		ev->addr = ev->size = 0;
	} else if (!was_sample) {
		ev->kind = EVENT_ALLOC;
		ev->old_addr = is_sample ? ev->old_addr : 0;
	}
	return was_sample || is_sample || is_failed;
}

bool heap_sample_keep(struct heap_sample *h, const struct profile *p, bool is_chosen,
		      struct event *ev)
{
	if (!h->interval || h->is_done)
		return true;
	bool is_call = ev->kind == EVENT_ALLOC || ev->kind == EVENT_FREE ||
		       ev->kind == EVENT_REALLOC_END;

	if (is_call && !is_chosen)
		count_call(h, ev);
	switch ((enum event_kind)ev->kind) {
	case EVENT_ALLOC:
		return !ev->addr || is_chosen || ev->weighted ||
		       byte_sampler_take(&h->sampler, ev->size);
	case EVENT_FREE:
		return profile_has_block(p, ev->addr);
	case EVENT_REALLOC_BEGIN:
		return profile_has_block(p, ev->old_addr);
	case EVENT_REALLOC_END:
		return keep_realloc(h, p, is_chosen, ev);
	default:
		return true;
	}
}

char *heap_sample_text(uint64_t interval)
{
	static const char *const suffixes[] = {"", "K", "M", "G"};
	size_t i = 0;

	for (; interval % 1024 == 0 && i + 1 < ARRAY_SIZE(suffixes); i++)
		interval /= 1024;
	return xasprintf("--heap-sample=%llu%s", (unsigned long long)interval, suffixes[i]);
}
