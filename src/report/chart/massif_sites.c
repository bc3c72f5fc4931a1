/*
 * The call sites that a massif file's chart shows: all its trees merged, cut at the most
 * informative sites, these labelled, and their bytes at each snapshot, also between two trees.
 */
#include "report/chart/massif_sites.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/path_tree.h"
#include "report/massif_file.h"
#include "report/massif_paths.h"
#include "symbols/wrapper.h"

/*
 * The trees of all snapshots of a massif file merged into one by functions and lines; the weight of
 * a node is its maximum. Wrappers (symbols/wrapper.h) at the leaves are skipped, so the merged tree
 * begins at their callers.
 *
 *	file:    mmap64 <- malloc <- fill (t.c:8) <- main         merged:  fill (t.c:8) <- main
 *	         mmap64 <- _dl_map_segments <- dl_main                     [dynamic loader]
 */

/* The merged node of a node of the file. */
struct massif_place {
	uint32_t node;         /* merged; 0 = none */
	uint64_t bytes;        /* bytes counted there */
	enum frame_rank rank;  /* RANK_SITE: counts; else skipped in favour of its callers */
	bool is_ended;         /* no caller can be the call site: RANK_THREAD */
	uint32_t named;        /* node of the file with its name: for wrappers, the best so far */
};

struct massif_merged {
	const struct massif_file *file;
	struct path_tree *tree;
	struct massif_place *place; /* by node of the file */
	uint64_t *weight;      /* by merged node: its maximum over all snapshots */
	uint32_t *sample;      /* by merged node: a node of the file with its name */
	uint64_t largest;      /* maximum of a tree */
};

#define MOST 0.9 /* share of a site: a caller that holds as much is its only one */

/* Names for frames whose function and place are useless; NULL = use these. */
static char *special_name(const struct massif_file *f, const struct massif_frame *frame,
			  bool is_wrapper)
{
	const char *label = is_wrapper ? wrapper_label(massif_wrapper_rank(f, frame)) : NULL;

	if (label)
		return xstrdup(label);
	if (f->memory == MEMORY_PAGES && !frame->address)
		return xstrdup("[initial image]"); /* mapped by exec */
	if (!is_wrapper || !massif_text_is(frame->function, "???") || !frame->object.size)
		return NULL;
	_cleanup_free_ char *object = xasprintf("%.*s", MASSIF_TEXT(frame->object));

	return xasprintf("[%s]", text_base_name(object));
}

/*
 * The displayed function and location of @node: *@location_out may be NULL. @may_be_wrapper: a
 * wrapper that represents its stack.
 */
static void name_node(const struct massif_file *f, uint32_t node, bool may_be_wrapper,
		      char **function_out, char **location_out)
{
	struct massif_frame frame;

	massif_file_frame(&f->node[node], &frame);
	bool is_wrapper = may_be_wrapper && massif_wrapper_rank(f, &frame) != RANK_SITE;
	char *special = special_name(f, &frame, is_wrapper);

	massif_paths_site(f, node, function_out, location_out);
	(*function_out)[text_size_without_clone(*function_out)] = '\0';
	if (!special && **function_out != '[')
		return;
	free(*location_out);
	*location_out = NULL;
	if (!special)
		return;
	free(*function_out);
	*function_out = text_clean(special, strlen(special));
	free(special);
}

/* Nodes of equal names are one site. @is_wrapper: the stack has no other frames. */
static char *merged_name(const struct massif_file *f, uint32_t node, bool is_wrapper)
{
	const struct massif_text line = f->node[node].text;
	const char *suffix = is_wrapper ? " ..." : "";
	_cleanup_free_ char *function = NULL, *location = NULL;

	name_node(f, node, is_wrapper, &function, &location);
	if (strcmp(function, "???") == 0) /* distinguished by its address */
		return xasprintf("%.*s%s", MASSIF_TEXT(line), suffix);
	return xasprintf("%s %s%s", function, location ? location : "", suffix);
}

static uint32_t add_merged(const struct massif_file *f, struct massif_merged *m, uint32_t node,
			   uint32_t parent, bool is_wrapper)
{
	_cleanup_free_ char *name = merged_name(f, node, is_wrapper);

	return path_tree_child(m->tree, parent, name, strlen(name));
}

/* Whether @node has no name and its main caller is a wrapper: then it is part of that. */
static bool is_below_wrapper(const struct massif_file *f, uint32_t node)
{
	struct massif_frame frame;

	for (; node; node = f->node[node].first_child) {
		massif_file_frame(&f->node[node], &frame);
		if (frame.line != MASSIF_LINE_FRAME)
			return false;
		if (!massif_text_is(frame.function, "???"))
			return massif_wrapper_is_allocator(&frame);
	}
	return false;
}

/* The role of @node if there is no call site below it. */
static enum frame_rank rank_of(const struct massif_file *f, uint32_t node,
			       const struct massif_frame *frame)
{
	enum frame_rank rank = massif_wrapper_rank(f, frame);

	return rank == RANK_SITE && is_below_wrapper(f, node) ? RANK_UNNAMED : rank;
}

/* A wrapper has bytes of its own if the stack ends with it. */
static void place_wrapper(const struct massif_file *f, struct massif_merged *m, uint32_t node,
			  enum frame_rank rank)
{
	const struct massif_place *parent = &m->place[f->node[node].parent];
	struct massif_place *p = &m->place[node];
	bool is_better = !parent->named || wrapper_is_better(rank, parent->rank);

	p->is_ended = parent->is_ended || rank == RANK_THREAD;
	p->rank = is_better ? rank : parent->rank;
	p->named = is_better ? node : parent->named;
	p->bytes = massif_own_bytes(f, node);
	p->node = p->bytes ? add_merged(f, m, p->named, 0, true) : 0;
}

static void place_node(const struct massif_file *f, struct massif_merged *m, uint32_t node)
{
	struct massif_frame frame;
	uint32_t parent = f->node[node].parent;
	struct massif_place *p = &m->place[node];

	massif_file_frame(&f->node[node], &frame);
	if (!parent || frame.line != MASSIF_LINE_FRAME)
		return;
	bool is_first = !f->node[parent].parent || m->place[parent].rank != RANK_SITE;
	enum frame_rank rank = is_first ? rank_of(f, node, &frame) : RANK_SITE;

	if (m->place[parent].is_ended)
		rank = RANK_UNNAMED;
	if (rank != RANK_SITE) {
		place_wrapper(f, m, node, rank);
		return;
	}
	if (!is_first && !m->place[parent].node)
		return;
	p->bytes = f->node[node].bytes;
	p->named = node;
	p->node = add_merged(f, m, node, is_first ? 0 : m->place[parent].node, false);
}

/* Updates maxima from the tree at @root; all of @sum is 0 before and after. */
static void weigh_tree(const struct massif_file *f, struct massif_merged *m, uint32_t root,
		       uint64_t *sum)
{
	uint32_t end = massif_tree_end(f, root);

	for (uint32_t i = root; i < end; i++)
		sum[m->place[i].node] += m->place[i].bytes;
	for (uint32_t i = root; i < end; i++) {
		uint32_t at = m->place[i].node;

		if (at && sum[at] >= m->weight[at]) {
			m->weight[at] = sum[at];
			m->sample[at] = m->place[i].named;
		}
		sum[at] = 0;
	}
}

static void massif_merge(const struct massif_file *f, struct massif_merged *m)
{
	*m = (struct massif_merged){.file = f};
	m->tree = path_tree_new();
	m->place = xcalloc(f->node_count, sizeof(*m->place));
	for (uint32_t i = 1; i < f->node_count; i++)
		place_node(f, m, i);
	m->weight = xcalloc(path_tree_node_count(m->tree), sizeof(*m->weight));
	m->sample = xcalloc(path_tree_node_count(m->tree), sizeof(*m->sample));
	_cleanup_free_ uint64_t *sum = xcalloc(path_tree_node_count(m->tree), sizeof(*sum));

	for (size_t s = 0; s < f->snapshot_count; s++) {
		if (!f->snapshot[s].root)
			continue;
		weigh_tree(f, m, f->snapshot[s].root, sum);
		m->largest = MAX(m->largest, f->node[f->snapshot[s].root].bytes);
	}
}

static void massif_merged_deinit(struct massif_merged *m)
{
	path_tree_free(m->tree);
	free(m->place);
	free(m->weight);
	free(m->sample);
}

/* The one caller of @node that has nearly all of its bytes; 0 = none. */
static uint32_t massif_merged_only_caller(const struct massif_merged *m, uint32_t node)
{
	uint32_t c = path_tree_node(m->tree, node)->first_child;

	for (; c; c = path_tree_node(m->tree, c)->next_sibling)
		if ((double)m->weight[c] >= MOST * (double)m->weight[node])
			return c;
	return 0;
}

/* The function of @node of the merged tree, and its location: NULL if it is not to be shown. */
static void massif_merged_name(const struct massif_merged *m, uint32_t node, char **function_out,
			       char **location_out)
{
	/* only a stack of wrappers alone begins with a wrapper */
	bool may_be_wrapper = !path_tree_node(m->tree, node)->parent;

	name_node(m->file, m->sample[node], may_be_wrapper, function_out, location_out);
}

/* Labels for the call sites of a picture: "fill", "(t.cpp:8)". No two sites have the same label. */

/*
 * A refined site is shown as a chain of functions, "fill ← load ← main". A site without a name is
 * named after its nearest caller that has one.
 */

static bool is_named(const char *function)
{
	return strcmp(function, "???") != 0 && strcmp(function, "(below main)") != 0;
}

/* The name of the function of @node in a chain: its last identifier, or its address. */
static char *link_name(const struct massif_merged *m, uint32_t node)
{
	_cleanup_free_ char *function = NULL, *ignored = NULL;
	struct massif_frame frame;

	massif_merged_name(m, node, &function, &ignored);
	if (is_named(function))
		return text_identifier(function);
	massif_file_frame(&m->file->node[m->sample[node]], &frame);
	return xasprintf("0x%" PRIX64, frame.address);
}

/* From the first named function to @node, all or only the ends: "fill \u2190 main". */
static char *chain_name(const struct massif_merged *m, uint32_t node,
			bool is_whole)
{
	uint32_t parent = path_tree_node(m->tree, node)->parent;
	_cleanup_free_ char *own = link_name(m, node);

	while (parent && !is_whole && path_tree_node(m->tree, parent)->parent)
		parent = path_tree_node(m->tree, parent)->parent;
	if (!parent)
		return_ptr(own);
	_cleanup_free_ char *inner = chain_name(m, parent, is_whole);

	if (!strncmp(inner, "0x", 2) && strncmp(own, "0x", 2) != 0)
		return_ptr(own);
	return xasprintf("%s \u2190 %s", inner, own);
}

/* A nameless function is identified by the nearest named one of its sole callers. */
static uint32_t named_caller(const struct massif_merged *m, uint32_t node)
{
	for (uint32_t at = node; at; at = massif_merged_only_caller(m, at)) {
		_cleanup_free_ char *function = NULL, *ignored = NULL;

		massif_merged_name(m, at, &function, &ignored);
		if (is_named(function))
			return at;
	}
	return node;
}

static void set_name(const struct massif_merged *m, uint32_t node, char **function,
		     char **location)
{
	_cleanup_free_ char *ignored = NULL;
	uint32_t named = named_caller(m, node);

	massif_merged_name(m, named, &ignored, location);
	if (path_tree_node(m->tree, named)->parent || !is_named(ignored)) {
		*function = chain_name(m, named, false);
		return;
	}
	*function = ignored;
	ignored = NULL;
}

static bool is_same(const struct massif_sites *s, size_t i, size_t j)
{
	return !strcmp(s->function[i], s->function[j]) &&
	       !strcmp(s->location[i] ? s->location[i] : "", s->location[j] ? s->location[j] : "");
}

static bool is_double(const struct massif_sites *s, size_t i)
{
	for (size_t j = 0; j < s->count; j++)
		if (j != i && is_same(s, i, j))
			return true;
	return false;
}

/* Sites with equal labels get all their functions, and then the address. */
static void make_distinct(const struct massif_merged *m, const uint32_t *node,
			  struct massif_sites *out)
{
	bool needs_more[MASSIF_SITES_MAX];

	for (size_t i = 0; i < out->count; i++)
		needs_more[i] = is_double(out, i);
	for (size_t i = 0; i < out->count; i++) {
		if (!needs_more[i])
			continue;
		free(out->function[i]);
		out->function[i] = chain_name(m, named_caller(m, node[i]), true);
	}
	for (size_t i = 0; i < out->count; i++)
		needs_more[i] = is_double(out, i);
	for (size_t i = 0; i < out->count; i++) {
		struct massif_frame frame;
		char *function = out->function[i];

		if (!needs_more[i])
			continue;
		massif_file_frame(&m->file->node[m->sample[node[i]]], &frame);
		out->function[i] = xasprintf("%s at 0x%" PRIX64, function, frame.address);
		free(function);
	}
}

/*
 * Chooses call sites: a cut through the merged tree (massif_sites.c). It starts at the innermost
 * functions and is refined: the heaviest site is replaced by its callers while there is room and
 * they are more informative.
 */

#define WORTH 0.03     /* of the largest tree: a caller with less is not worth an area */
#define COVERAGE 0.6   /* of a site: minimum share of such callers for replacing it */

struct site {
	uint32_t node;         /* merged */
	bool is_final;
};

struct cut {
	const struct massif_merged *merged;
	uint64_t worth;        /* minimum weight for being shown */
	VEC(struct site) site;
};

static size_t count_worthy(const struct cut *cut, uint32_t node, uint64_t *sum_out)
{
	const struct massif_merged *m = cut->merged;
	size_t count = 0;
	uint64_t sum = 0;

	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling) {
		if (m->weight[c] < cut->worth)
			continue;
		count++;
		sum += m->weight[c];
	}
	*sum_out = sum;
	return count;
}

/* Replaces site @i by its callers if they are worth it and there is room; otherwise it is final. */
static void refine(struct cut *cut, size_t i)
{
	const struct massif_merged *m = cut->merged;
	uint32_t node = cut->site.data[i].node, next;
	uint64_t sum;

	cut->site.data[i].is_final = true;
	while ((next = massif_merged_only_caller(m, node)))
		node = next;
	size_t count = count_worthy(cut, node, &sum);

	if (count < 2 || cut->site.count - 1 + count > MASSIF_SITES_MAX ||
	    (double)sum < COVERAGE * (double)m->weight[cut->site.data[i].node])
		return;
	vec_take_swap(&cut->site, i);
	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= cut->worth)
			*vec_add(&cut->site) = (struct site){.node = c};
}

static size_t heaviest_open(const struct cut *cut)
{
	const uint64_t *weight = cut->merged->weight;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < cut->site.count; i++) {
		const struct site *s = &cut->site.data[i];

		if (!s->is_final &&
		    (best == SIZE_MAX || weight[s->node] > weight[cut->site.data[best].node]))
			best = i;
	}
	return best;
}

static int compare_sites(const void *a, const void *b, void *ctx)
{
	const uint64_t *weight = ctx;
	uint32_t x = ((const struct site *)a)->node, y = ((const struct site *)b)->node;

	if (weight[x] != weight[y])
		return weight[x] < weight[y] ? 1 : -1;
	return x < y ? -1 : x > y;
}

static void make_cut(struct cut *cut)
{
	const struct massif_merged *m = cut->merged;

	for (uint32_t c = path_tree_node(m->tree, 0)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling)
		if (m->weight[c] >= cut->worth)
			*vec_add(&cut->site) = (struct site){.node = c};
	for (size_t i; (i = heaviest_open(cut)) != SIZE_MAX;)
		refine(cut, i);
	if (cut->site.count)
		qsort_r(cut->site.data, cut->site.count, sizeof(*cut->site.data), compare_sites,
			m->weight);
	cut->site.count = MIN(cut->site.count, (size_t)MASSIF_SITES_MAX);
}

/* Adds up the bytes of the nodes that are sites, for each snapshot. */
static void sum_up(const struct massif_file *f, const struct cut *cut, struct massif_sites *out)
{
	const struct massif_merged *m = cut->merged;
	uint8_t *site_of = xcalloc(path_tree_node_count(m->tree), 1); /* site + 1 by merged node */

	for (size_t i = 0; i < out->count; i++)
		site_of[cut->site.data[i].node] = (uint8_t)(i + 1);
	for (size_t s = 0; s < f->snapshot_count; s++) {
		uint32_t root = f->snapshot[s].root;

		for (uint32_t n = root, end = root ? massif_tree_end(f, root) : 0; n < end; n++) {
			const struct massif_place *p = &m->place[n];

			if (p->node && site_of[p->node])
				out->bytes[s * MASSIF_SITES_MAX + site_of[p->node] - 1] += p->bytes;
		}
	}
	free(site_of);
}

void massif_sites_find(const struct massif_file *f, struct massif_sites *out)
{
	struct massif_merged m;
	uint32_t node[MASSIF_SITES_MAX];
	struct cut cut = {.merged = &m};

	massif_merge(f, &m);
	cut.worth = MAX(1, (uint64_t)((double)m.largest * WORTH));
	make_cut(&cut);
	*out = (struct massif_sites){.count = cut.site.count};
	out->bytes = xcalloc(MAX(f->snapshot_count, 1) * MASSIF_SITES_MAX, sizeof(*out->bytes));
	for (size_t i = 0; i < out->count; i++)
		node[i] = cut.site.data[i].node;
	for (size_t i = 0; i < out->count; i++)
		set_name(&m, node[i], &out->function[i], &out->location[i]);
	make_distinct(&m, node, out);
	sum_up(f, &cut, out);
	vec_deinit(&cut.site);
	massif_merged_deinit(&m);
}

void massif_sites_deinit(struct massif_sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->function[i]);
		free(sites->location[i]);
	}
	free(sites->bytes);
	*sites = (struct massif_sites){0};
}

/*
 * Call sites between snapshots with trees.
 */

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
