/* Each kind of advice is computed from the sums. See inspect_advice.h. */
#include "output/inspect_advice.h"

#include "base/amount.h"
#include "base/alloc.h"

static uint64_t total(struct inspect_bytes b)
{
	return b.resident + b.swapped;
}

static void sum(struct inspect_bytes *to, struct inspect_bytes b)
{
	to->resident += b.resident;
	to->swapped += b.swapped;
}

struct inspect_bytes inspect_free_bytes(const struct inspect_report *r)
{
	struct inspect_bytes all = {0};

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		sum(&all, r->heaps.arenas.data[i].free);
	for (size_t i = ROW_TCACHE; r->other.name && i <= ROW_FREE_PAGES; i++)
		sum(&all, r->row[i]);
	return all;
}

struct inspect_bytes inspect_trim_bytes(const struct inspect_report *r)
{
	struct inspect_bytes all = {0};

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		sum(&all, r->heaps.arenas.data[i].trim);
	return all;
}

static void add(struct inspect_advice_list *out, const char *name, uint64_t bytes, char *text)
{
	if (bytes < PAGE_SIZE_MIN) {
		free(text);
		return;
	}
	*vec_add(&out->list) = (struct inspect_advice){.name = name, .bytes = bytes, .text = text};
}

static void advise_trim(const struct inspect_report *r, struct inspect_advice_list *out)
{
	add(out, "malloc_trim", total(inspect_trim_bytes(r)),
	    xstrdup("malloc_trim(0), called by the program now and then"));
}

/* Free memory in arenas other than the main one could serve all threads. */
static void advise_arenas(const struct inspect_report *r, struct inspect_advice_list *out)
{
	uint64_t bytes = 0;
	size_t others = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		const struct heap_arena *a = &r->heaps.arenas.data[i];

		if (a->is_main)
			continue;
		bytes += total(a->free);
		others++;
	}
	if (others == 0)
		return;
	add(out, "arena_max", bytes,
	    xasprintf("MALLOC_ARENA_MAX=1 in the environment at its start: what %zu other arena%s "
		      "free would serve all threads", others, others == 1 ? " has" : "s have"));
	if (out->list.count && bytes >= PAGE_SIZE_MIN)
		out->list.data[out->list.count - 1].is_limit = true;
}

/* Large chunks that would have been mapped separately with the initial threshold. */
static void advise_mmap(const struct inspect_report *r, struct inspect_advice_list *out)
{
	char now[AMOUNT_SIZE];
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		bytes += total(r->heaps.arenas.data[i].large_free);
	if (!r->params.is_known || r->params.mmap_threshold <= HEAP_LARGE)
		return;
	size_t before = out->list.count;

	add(out, "mmap_threshold", bytes,
	    xasprintf("MALLOC_MMAP_THRESHOLD_=131072: blocks of that size get mappings of their "
		      "own, which free returns (the threshold has risen to %s)",
		      amount_bytes((double)r->params.mmap_threshold, now)));
	if (out->list.count > before)
		out->list.data[before].is_limit = true;
}

static void advise_top(const struct inspect_report *r, struct inspect_advice_list *out)
{
	char now[AMOUNT_SIZE];

	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		const struct heap_arena *a = &r->heaps.arenas.data[i];
		uint64_t top = total(a->top), kept = HEAP_LARGE + r->params.top_pad;

		if (!a->is_main || !r->params.is_known || top <= kept ||
		    r->params.trim_threshold <= HEAP_LARGE)
			continue;
		add(out, "trim_threshold", top - kept,
		    xasprintf("MALLOC_TRIM_THRESHOLD_=131072: free returns what is at the end of "
			      "the main arena (the threshold is %s)",
			      amount_bytes((double)r->params.trim_threshold, now)));
	}
}

static int compare(const void *a, const void *b)
{
	const struct inspect_advice *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

void inspect_advice_find(const struct inspect_report *r, struct inspect_advice_list *out)
{
	*out = (struct inspect_advice_list){0};
	if (!inspect_is_consistent(r))
		return; /* malloc might abort */
	advise_trim(r, out);
	advise_arenas(r, out);
	advise_mmap(r, out);
	advise_top(r, out);
	if (out->list.count > 1)
		qsort(out->list.data, out->list.count, sizeof(*out->list.data), compare);
}

void inspect_advice_deinit(struct inspect_advice_list *a)
{
	for (size_t i = 0; i < a->list.count; i++)
		free(a->list.data[i].text);
	vec_deinit(&a->list);
}
