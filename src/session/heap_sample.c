/*
 * Selects the samples, and says what a profile of samples is exact about, and which events it
 * lacks.
 */
#include "session/heap_sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "profile/profile.h"
#include "session/session.h"

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
	call_totals_count(&h->totals, ev->function, ev->kind == EVENT_FREE, ev->size);
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

/* "--heap-sample=512K"; the caller frees it. */
static char *heap_sample_text(uint64_t interval)
{
	static const char *const suffixes[] = {"", "K", "M", "G"};
	size_t i = 0;

	for (; interval % 1024 == 0 && i + 1 < ARRAY_SIZE(suffixes); i++)
		interval /= 1024;
	return xasprintf("--heap-sample=%llu%s", (unsigned long long)interval, suffixes[i]);
}

char *lost_events_text(const struct lost_events *lost, uint64_t interval)
{
	char n[AMOUNT_SIZE], size[AMOUNT_SIZE], m[AMOUNT_SIZE];
	const char *what = interval ? "sample" : "allocation";

	if (!lost->allocations && !lost->releases && !lost->has_unsure)
		return NULL;
	amount_commas(lost->allocations, n);
	amount_commas(lost->releases, m);
	amount_bytes((double)lost->bytes, size);
	return xasprintf("%s %s%s of %s%s and %s%s release%s are missing", n, what,
			 plural(lost->allocations), interval ? "about " : "", size,
			 lost->has_unsure ? "at least " : "", m, plural(lost->releases));
}

uint64_t session_sampling_longest(const struct session *s)
{
	return s->heap.sample.interval << s->heap.sample.shift_max;
}

char *session_sampling_range(const struct session *s)
{
	return sampling_range(s->heap.sample.interval, session_sampling_longest(s));
}

void session_describe(struct session *s, uint64_t interval)
{
	const char *desc = s->run->options->desc;
	/* bounds of errors depend on the longest one */
	_cleanup_free_ char *sampling =
		interval ? heap_sample_text(interval << s->heap.sample.shift_max) : NULL;
	_cleanup_free_ char *range = session_sampling_range(s);
	_cleanup_free_ char *changes = s->heap.sample.shift_max ?
					       xasprintf(", sampled every %s", range) :
					       xstrdup("");
	_cleanup_free_ char *lost =
		lost_events_text(&s->heap.sample.totals.lost, s->heap.sample.interval);
	bool has_desc = strcmp(desc, "(none)") != 0 || !sampling;

	free(s->process.desc);
	/* readers leave out what is after '#' */
	s->process.desc = xasprintf("%s%s%s%s%s%s%s", has_desc ? desc : "",
				    has_desc && sampling ? " " : "", sampling ? sampling : "",
				    interval > 1 ? " # the numbers of the heap are estimates" : "",
				    changes, lost ? interval > 1 ? ", " : " # " : "",
				    lost ? lost : "");
}

void session_sampling_note_sample(struct session *s, uint8_t shift)
{
	if (shift <= s->heap.sample.shift_max)
		return;
	s->heap.sample.shift_max = shift;
	session_describe(s, s->heap.sample.interval);
}
