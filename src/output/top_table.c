/*
 * The rows of --top; top_table.h has the picture. An update costs one pass over the
 * leaves, and questions to the filter for leaves that are new.
 */
#include "output/top_table.h"

#include <math.h>
#include <stdio.h>

#include "output/shown_stack.h"

#define NO_SITE UINT32_MAX

void top_table_deinit(struct top_table *t)
{
	vec_deinit(&t->sites);
	vec_deinit(&t->site_of);
	vec_deinit(&t->order);
}

static uint32_t site_with(struct top_table *t, uint32_t frame)
{
	for (size_t i = 0; i < t->sites.count; i++)
		if (t->sites.data[i].frame == frame)
			return (uint32_t)i;
	*vec_add(&t->sites) = (struct top_site){.frame = frame};
	return (uint32_t)t->sites.count - 1;
}

static uint32_t find_site(struct top_table *t, struct shown_stack *s, uint32_t node)
{
	if (!shown_stack_fill(s, node))
		return NO_SITE;
	return site_with(t, s->count > 0 ? s->frame.data[s->first] : 0);
}

static void place_new_leaves(struct top_table *t, const struct report *r)
{
	struct shown_stack stack = {.report = r};

	if (t->site_of.count == 0)
		*vec_add(&t->site_of) = NO_SITE; /* leaf 0 is none */
	for (uint32_t leaf = (uint32_t)t->site_of.count; leaf <= profile_leaf_count(r->profile);
	     leaf++) {
		uint32_t site = find_site(t, &stack, profile_leaf(r->profile, leaf)->node);

		*vec_add(&t->site_of) = site;
	}
	shown_stack_deinit(&stack);
}

static void add_leaf(struct top_site *s, uint32_t index, const struct leaf *leaf)
{
	s->live += leaf->live_bytes;
	s->blocks += leaf->live_blocks;
	s->total += leaf->total_bytes;
	if (s->leaf == 0 || leaf->live_bytes > s->leaf_live) {
		s->leaf = index;
		s->leaf_live = leaf->live_bytes;
	}
}

void top_table_update(struct top_table *t, const struct report *r, uint64_t time_ns)
{
	double seconds = t->time_ns && time_ns > t->time_ns ? (double)(time_ns - t->time_ns) / 1e9 :
							      0;

	place_new_leaves(t, r);
	for (size_t i = 0; i < t->sites.count; i++) {
		struct top_site *s = &t->sites.data[i];

		s->last_live = s->live;
		s->last_total = s->total;
		s->live = s->blocks = s->total = s->leaf_live = 0;
		s->leaf = 0;
	}
	for (uint32_t leaf = 1; leaf < t->site_of.count; leaf++)
		if (t->site_of.data[leaf] != NO_SITE)
			add_leaf(&t->sites.data[t->site_of.data[leaf]], leaf,
				 profile_leaf(r->profile, leaf));
	for (size_t i = 0; i < t->sites.count; i++) {
		struct top_site *s = &t->sites.data[i];

		s->growth = (int64_t)(s->live - s->last_live);
		s->since_start = (int64_t)(s->live - s->start_live);
		s->rate = seconds > 0 ? (double)(s->total - s->last_total) / seconds : 0;
	}
	t->time_ns = time_ns;
}

void top_table_restart(struct top_table *t)
{
	for (size_t i = 0; i < t->sites.count; i++) {
		t->sites.data[i].start_live = t->sites.data[i].live;
		t->sites.data[i].since_start = 0;
	}
}

/* -- order -- */

struct sorting {
	const struct top_table *table;
	enum top_order by;
};

static double key_of(const struct top_site *s, enum top_order by)
{
	switch (by) {
	case TOP_GROWTH:
		return (double)s->growth;
	case TOP_SINCE_START:
		return (double)s->since_start;
	case TOP_RATE:
		return s->rate;
	default:
		return (double)s->live;
	}
}

static int compare(const void *a, const void *b, void *ctx)
{
	const struct sorting *sorting = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct top_site *x = &sorting->table->sites.data[i],
			      *y = &sorting->table->sites.data[k];
	double p = key_of(x, sorting->by), q = key_of(y, sorting->by);

	if (p != q)
		return p > q ? -1 : 1;
	if (x->live != y->live)
		return x->live > y->live ? -1 : 1;
	return i < k ? -1 : i > k;
}

void top_table_sort(struct top_table *t, enum top_order by)
{
	struct sorting sorting = {t, by};

	t->order.count = 0;
	for (size_t i = 0; i < t->sites.count; i++)
		*vec_add(&t->order) = (uint32_t)i;
	if (t->order.count > 1)
		qsort_r(t->order.data, t->order.count, sizeof(*t->order.data), compare, &sorting);
}

const char *top_bytes(char out[static 16], double bytes, bool is_change)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
	size_t unit = 0;
	double n = fabs(bytes);
	const char *sign = bytes < 0 ? "-" : is_change && bytes > 0 ? "+" : "";

	while (n >= 999.95 && unit + 1 < ARRAY_SIZE(units)) {
		n /= 1000;
		unit++;
	}
	snprintf(out, 16, unit ? "%s%.1f %s" : "%s%.0f %s", sign, n, units[unit]);
	return out;
}
