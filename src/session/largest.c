/* See largest.h. */
#include "session/largest.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "profile/history.h"

/* The last peak snapshot; UINT32_MAX if there is none. */
static uint32_t find_peak(const struct profile *p)
{
	for (uint32_t i = profile_snapshot_count(p); i-- > 0;) {
		if (profile_snapshot(p, i)->kind == SNAPSHOT_PEAK)
			return i;
	}
	return UINT32_MAX;
}

/* A history that was restarted has the peak since then. */
static bool is_exact(const struct history *h)
{
	return h && !h->base_ms;
}

/* The bytes of each leaf of @p, which has a history, at the exact peak, and their sum. */
static void find_exact(const struct profile *p, struct leaf_amounts *held, uint64_t *sum_out)
{
	const struct history *h = profile_whole_history(p);
	size_t leaves = h->leaf.count;

	*sum_out = profile_totals(p)->peak_bytes;
	held->bytes = xcalloc(leaves + 1, sizeof(*held->bytes));
	held->variance = xcalloc(leaves + 1, sizeof(*held->variance));
	for (uint32_t i = 1; i < leaves; i++) {
		struct history_held at_peak = profile_held_at_peak(p, h, i);

		held->bytes[i] = at_peak.bytes;
		held->variance[i] = at_peak.variance;
		held->count = i;
	}
}

/* The same at the peak's snapshot. */
static void find_snapshot(const struct profile *p, struct leaf_amounts *held, uint64_t *sum_out)
{
	uint32_t peak = find_peak(p);

	if (peak == UINT32_MAX)
		return;
	*sum_out = profile_snapshot(p, peak)->heap;
	held->count = profile_snapshot_leaves(p, peak, &held->bytes);
}

void largest_find(const struct report *r, struct largest *out)
{
	struct leaf_amounts held = {0};

	*out = (struct largest){0};
	if (is_exact(profile_whole_history(r->profile)))
		find_exact(r->profile, &held, &out->bytes);
	else
		find_snapshot(r->profile, &held, &out->bytes);
	if (held.count)
		out->count = call_sites_largest(r, &held, out->site, LARGEST_SITES);
	for (size_t i = 0; i < out->count; i++)
		out->error[i] = profile_error(r->profile, out->site[i].variance);
	free(held.bytes);
	free(held.variance);
}

static void print_row(const struct largest *l, bool is_first, uint64_t bytes, const char *error,
		      const char *text)
{
	char size[AMOUNT_SIZE];

	log_info("  %-12s %10s%s %5.1f %%  %s", is_first ? "largest" : "",
		 amount_bytes((double)bytes, size), error,
		 l->bytes ? 100.0 * (double)bytes / (double)l->bytes : 0, text);
}

void largest_print(const struct largest *l)
{
	uint64_t unresolved = 0;
	bool is_first = true;

	for (size_t i = 0; i < l->count; i++) {
		_cleanup_free_ char *text = text_site_label(l->site[i].text);
		double bytes = (double)l->site[i].bytes;
		char error[AMOUNT_SIZE] = "";

		if (estimate_is_below_resolution(bytes, l->error[i])) {
			unresolved += l->site[i].bytes;
			continue;
		}
		if (l->error[i] > 0)
			amount_error(bytes, l->error[i], error);
		print_row(l, is_first, l->site[i].bytes, error, text);
		is_first = false;
	}
	if (unresolved)
		print_row(l, is_first, unresolved, "", "sites below resolution");
}

void largest_deinit(struct largest *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->site[i].text);
}
