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

#define LABEL_MAX 100 /* characters */

/* The last snapshot that is the peak; UINT32_MAX if there is none. */
static uint32_t find_peak(const struct profile *p)
{
	for (uint32_t i = profile_snapshot_count(p); i-- > 0;) {
		if (profile_snapshot(p, i)->kind == SNAPSHOT_PEAK)
			return i;
	}
	return UINT32_MAX;
}

/* The bytes of each leaf at the peak itself, and of all; @p has a history. */
static uint32_t find_exact(const struct profile *p, uint64_t **bytes_out, uint64_t *sum_out)
{
	const struct history *h = profile_history(p);
	uint32_t count = (uint32_t)h->leaf.count;

	*bytes_out = xcalloc(count, sizeof(**bytes_out));
	for (uint32_t i = 1; i < count; i++)
		(*bytes_out)[i] = profile_held_at_peak(p, i).bytes;
	*sum_out = profile_totals(p)->peak_bytes;
	return count - 1;
}

/* The same at the peak's snapshot. */
static uint32_t find_snapshot(const struct profile *p, uint64_t **bytes_out, uint64_t *sum_out)
{
	uint32_t peak = find_peak(p);

	if (peak == UINT32_MAX)
		return 0;
	*sum_out = profile_snapshot(p, peak)->heap;
	return profile_snapshot_leaves(p, peak, bytes_out);
}

void largest_find(const struct report *r, struct largest *out)
{
	_cleanup_free_ uint64_t *bytes = NULL;
	uint32_t leaves;

	*out = (struct largest){0};
	if (profile_history(r->profile))
		leaves = find_exact(r->profile, &bytes, &out->bytes);
	else
		leaves = find_snapshot(r->profile, &bytes, &out->bytes);
	if (!leaves)
		return;
	out->count = call_sites_largest(r, bytes, leaves, out->site, LARGEST_SITES);
	for (size_t i = 0; i < out->count; i++)
		out->error[i] = profile_error(r->profile, out->site[i].variance);
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
		char *site = text_shorten_site(l->site[i].text, LABEL_MAX);
		_cleanup_free_ char *text = text_for_locale(site);
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
