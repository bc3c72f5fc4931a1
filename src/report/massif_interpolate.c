/*
 * Call sites between snapshots with trees.
 */
#include "report/massif_interpolate.h"

#include <math.h>
#include <string.h>

#define SITES (MASSIF_SITES_MAX + 1)

size_t massif_nearest_tree(const struct massif_file *f, size_t s, int step)
{
	for (; s < f->snapshot_count; s += (size_t)step)
		if (f->snapshot[s].root && f->snapshot[s].heap)
			return s;
	return SIZE_MAX;
}

/* The values of snapshot @s, which has a tree. */
static void read_tree(const struct massif_file *f, const struct massif_sites *sites, size_t s,
		      double bytes[SITES])
{
	double left = (double)f->snapshot[s].heap;

	memset(bytes, 0, SITES * sizeof(*bytes));
	for (size_t i = 0; i < sites->count; i++) {
		bytes[i] = fmin((double)sites->bytes[s * MASSIF_SITES_MAX + i], left);
		left -= bytes[i];
	}
	bytes[MASSIF_OTHER_SITES] = left;
}

/*
 * The relative position of snapshot @s between @before and @after, 0 .. 1. If the heap changes
 * much, sites change in proportion to it; otherwise in proportion to time.
 */
static double progress(const struct massif_file *f, const double *x, size_t before, size_t s,
		       size_t after)
{
	double h0 = (double)f->snapshot[before].heap, h1 = (double)f->snapshot[after].heap;
	double h = (double)f->snapshot[s].heap;

	if (fabs(h1 - h0) > 0.1 * fmax(h0, h1) && (h - h0) * (h - h1) <= 0)
		return (h - h0) / (h1 - h0);
	return x[after] > x[before] ? (x[s] - x[before]) / (x[after] - x[before]) : 0.5;
}

static double sum(const double value[SITES])
{
	double total = 0;

	for (size_t i = 0; i < SITES; i++)
		total += value[i];
	return total;
}

/* Scales all of @bytes so that they add up to @heap. */
static void scale(double bytes[SITES], double heap)
{
	double total = sum(bytes);

	for (size_t i = 0; i < SITES; i++)
		bytes[i] = total > 0 ? bytes[i] * heap / total : 0;
}

/* The total growth (@sign 1) or shrinkage (-1) of each site from tree to tree. */
static void sum_changes(const struct massif_file *f, const struct massif_sites *sites, int sign,
			double change[SITES])
{
	double old[SITES] = {0}, new[SITES];

	memset(change, 0, SITES * sizeof(*change));
	for (size_t s = 0; (s = massif_nearest_tree(f, s, 1)) != SIZE_MAX; s++) {
		read_tree(f, sites, s, new);
		for (size_t i = 0; i < SITES; i++)
			change[i] += fmax(0, sign * (new[i] - old[i]));
		memcpy(old, new, sizeof(old));
	}
}

/*
 * Makes @bytes add up to @heap in proportion to @change as far as possible: when one reaches 0, the
 * others take the rest.
 */
static void add_in_proportion(double bytes[SITES], const double change[SITES], double heap)
{
	for (size_t round = 0; round < SITES; round++) {
		double rest = heap - sum(bytes), changes = 0;
		for (size_t i = 0; i < SITES; i++)
			changes += rest > 0 || bytes[i] > 0 ? change[i] : 0;
		for (size_t i = 0; i < SITES && changes > 0; i++)
			bytes[i] = fmax(0, bytes[i] + rest * change[i] / changes);
	}
}

/* Makes @bytes add up to @heap. */
static void adjust(const struct massif_file *f, const struct massif_sites *sites, bool may_grow,
		   double heap, double bytes[SITES])
{
	double change[SITES];
	bool is_less = heap < sum(bytes);

	if (is_less || may_grow) {
		sum_changes(f, sites, is_less ? -1 : 1, change);
		add_in_proportion(bytes, change, heap);
	}
	if (heap > sum(bytes))
		bytes[MASSIF_OTHER_SITES] += heap - sum(bytes);
	else
		scale(bytes, heap);
}

void massif_interpolate(const struct massif_file *f, const struct massif_sites *sites,
			const double *x, size_t s, double bytes_out[SITES])
{
	size_t before = massif_nearest_tree(f, s, -1), after = massif_nearest_tree(f, s, 1);
	double end[SITES];

	memset(bytes_out, 0, SITES * sizeof(*bytes_out));
	if (before == SIZE_MAX)
		return;
	read_tree(f, sites, before, bytes_out);
	if (before == after)
		return;
	if (after != SIZE_MAX) {
		double part = progress(f, x, before, s, after);
		read_tree(f, sites, after, end);
		for (size_t i = 0; i < SITES; i++)
			bytes_out[i] += (end[i] - bytes_out[i]) * part;
	}
	adjust(f, sites, after != SIZE_MAX, (double)f->snapshot[s].heap, bytes_out);
}
