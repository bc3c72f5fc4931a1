/*
 * The rows of --top; see top.h. An update takes one pass over the leaves, and a filter call
 * for each new leaf.
 */
#include "live/top.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "output/report_tree.h"
#include "profile/estimate.h"

#define NO_SITE UINT32_MAX

void top_table_deinit(struct top_table *t)
{
	vec_deinit(&t->sites);
	vec_deinit(&t->leaves);
	vec_deinit(&t->order);
}

static uint32_t site_with(struct top_table *t, struct call_site at)
{
	for (size_t i = 0; i < t->sites.count; i++) {
		const struct call_site *other = &t->sites.data[i].at;
		if (other->frame == at.frame && other->inlined == at.inlined)
			return (uint32_t)i;
	}
	*vec_add(&t->sites) = (struct top_site){.at = at};
	return (uint32_t)t->sites.count - 1;
}

static uint32_t find_site(struct top_table *t, struct shown_stack *s, uint32_t node)
{
	if (!shown_stack_fill(s, node))
		return NO_SITE;
	if (t->is_above_wrappers)
		return site_with(t, call_site_find(s));
	return site_with(t, (struct call_site){
				    .frame = s->count > 0 ? s->frame.data[s->first] : 0});
}

static void place_new_leaves(struct top_table *t, const struct report *r)
{
	struct shown_stack stack = {.report = r};

	if (t->leaves.count == 0)
		*vec_add(&t->leaves) = (struct top_leaf){.site = NO_SITE}; /* leaf 0 is none */
	for (uint32_t leaf = (uint32_t)t->leaves.count; leaf <= profile_leaf_count(r->profile);
	     leaf++) {
		uint32_t site = find_site(t, &stack, profile_leaf(r->profile, leaf)->node);

		*vec_add(&t->leaves) = (struct top_leaf){.site = site};
	}
	shown_stack_deinit(&stack);
}

void top_table_group(struct top_table *t, const struct report *r, bool is_above_wrappers)
{
	struct shown_stack stack = {.report = r};

	t->is_above_wrappers = is_above_wrappers;
	t->sites.count = t->order.count = 0;
	for (uint32_t leaf = 1; leaf < t->leaves.count; leaf++)
		t->leaves.data[leaf].site =
			find_site(t, &stack, profile_leaf(r->profile, leaf)->node);
	shown_stack_deinit(&stack);
}

/* @seconds since the last update; 0 = this is the first one. */
static void add_leaf(struct top_table *t, uint32_t index, const struct leaf *leaf, double seconds)
{
	struct top_leaf *l = &t->leaves.data[index];
	struct top_site *s = &t->sites.data[l->site];

	s->live += leaf->live_bytes;
	s->blocks += leaf->live_blocks;
	s->variance += leaf->live_variance;
	s->growth += (int64_t)(leaf->live_bytes - l->last_live);
	s->since_start += (int64_t)(leaf->live_bytes - l->start_live);
	if (seconds > 0)
		s->rate += (double)(leaf->total_bytes - l->last_total) / seconds;
	if (s->leaf == 0 || leaf->live_bytes > s->leaf_live) {
		s->leaf = index;
		s->leaf_live = leaf->live_bytes;
	}
	l->last_live = leaf->live_bytes;
	l->last_total = leaf->total_bytes;
}

void top_table_update(struct top_table *t, const struct report *r, uint64_t time_ns)
{
	double seconds = t->time_ns && time_ns > t->time_ns ? (double)(time_ns - t->time_ns) / 1e9 :
							      0;

	place_new_leaves(t, r);
	for (size_t i = 0; i < t->sites.count; i++)
		t->sites.data[i] = (struct top_site){.at = t->sites.data[i].at};
	for (uint32_t leaf = 1; leaf < t->leaves.count; leaf++)
		if (t->leaves.data[leaf].site != NO_SITE)
			add_leaf(t, leaf, profile_leaf(r->profile, leaf), seconds);
	for (size_t i = 0; i < t->sites.count; i++) {
		struct top_site *s = &t->sites.data[i];

		s->blocks = profile_count(r->profile, s->blocks);
		s->error = profile_error(r->profile, s->variance);
	}
	t->time_ns = time_ns;
}

void top_table_restart(struct top_table *t)
{
	for (size_t i = 0; i < t->leaves.count; i++)
		t->leaves.data[i].start_live = t->leaves.data[i].last_live;
	for (size_t i = 0; i < t->sites.count; i++)
		t->sites.data[i].since_start = 0;
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

static void add_unresolved(struct top_site *sum, const struct top_site *s)
{
	sum->live += s->live;
	sum->blocks += s->blocks;
	sum->growth += s->growth;
	sum->since_start += s->since_start;
	sum->rate += s->rate;
	sum->error = sqrt(sum->error * sum->error + s->error * s->error);
}

void top_table_sort(struct top_table *t, enum top_order by)
{
	struct sorting sorting = {t, by};

	t->order.count = 0;
	t->unresolved = (struct top_site){0};
	for (size_t i = 0; i < t->sites.count; i++) {
		const struct top_site *s = &t->sites.data[i];

		/* without live bytes it is known exactly */
		if (s->live == 0 || !estimate_is_below_resolution((double)s->live, s->error))
			*vec_add(&t->order) = (uint32_t)i;
		else
			add_unresolved(&t->unresolved, s);
	}
	if (t->order.count > 1)
		qsort_r(t->order.data, t->order.count, sizeof(*t->order.data), compare, &sorting);
}

/* -- labels -- */

static bool is_repeated(char *const *label, size_t count, size_t i)
{
	for (size_t k = 0; k < count; k++) {
		if (k != i && strcmp(label[k], label[i]) == 0)
			return true;
	}
	return false;
}

/* Several calls in one source line have the same label: then the address is added. */
void top_table_labels(const struct top_table *t, const struct report *r, size_t first,
		      size_t count, char **out)
{
	const struct calltree *tree = profile_calltree(r->profile);
	bool *repeated = xcalloc(MAX(count, (size_t)1), sizeof(*repeated));

	for (size_t i = 0; i < count; i++)
		out[i] = call_site_text(r, t->sites.data[t->order.data[first + i]].at);
	for (size_t i = 0; i < count; i++)
		repeated[i] = is_repeated(out, count, i);
	for (size_t i = 0; i < count; i++) {
		uint32_t frame = t->sites.data[t->order.data[first + i]].at.frame;
		char *label = out[i];

		if (!repeated[i] || !frame)
			continue;
		out[i] = xasprintf("%s at %#" PRIx64, label, calltree_frame(tree, frame)->key);
		free(label);
	}
	free(repeated);
}
