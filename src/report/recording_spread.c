/*
 * How the blocks of a recording are spread over threads, sizes and lifetimes, and how long those
 * of each call site lived, as text.
 */
#include "report/recording_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_site.h"
#include "report/life.h"
#include "report/recording_paths.h"

bool row_limits_allow(const struct row_limits *limits, size_t i, uint64_t part, uint64_t all)
{
	return i < limits->top && (double)part * 100 >= limits->threshold * (double)all;
}

/* -- threads -- */

struct share {
	size_t thread;               /* row of THREADS */
	uint64_t bytes, blocks;
	double variance;
};

static int compare_shares(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void add_share(struct share *to, const struct share *from)
{
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->variance += from->variance;
}

/* By thread, the largest first, and their sum in *@all; the caller frees them. */
static struct share *sum_shares(const struct recording *r, struct share *all)
{
	const struct recording_table *t = &r->table[RECORDING_SHARES];
	size_t threads = recording_rows(r, RECORDING_THREADS);
	struct share *of = xcalloc(threads + 1, sizeof(*of));

	for (size_t i = 0; i < threads; i++)
		of[i].thread = i;
	for (size_t i = 0; i < t->rows; i++) {
		const struct share share = {.bytes = t->column[SHARE_BYTES][i],
					    .blocks = t->column[SHARE_BLOCKS][i],
					    .variance = (double)t->column[SHARE_VARIANCE][i]};

		add_share(&of[t->column[SHARE_THREAD][i]], &share);
		add_share(all, &share);
	}
	if (threads > 1)
		qsort(of, threads, sizeof(*of), compare_shares);
	return of;
}

/* "worker (1234)"; the caller frees it. */
static char *thread_label(const struct recording *r, size_t thread)
{
	uint64_t id = recording_get(r, RECORDING_THREADS, thread, THREAD_ID);
	char key[40];

	snprintf(key, sizeof(key), "thread.%" PRIu64, id);
	const char *name = recording_meta(r, key);
	_cleanup_free_ char *clean = text_clean(name ? name : "", name ? strlen(name) : 0);

	return xasprintf("%s%s%" PRIu64 "%s", clean, *clean ? " (" : "", id, *clean ? ")" : "");
}

/* What both kinds of tables end with. */
static void put_blocks(FILE *out, const struct recording *r, uint64_t blocks, double share)
{
	char text[AMOUNT_SIZE];

	fprintf(out, "%12s %5.1f %%  ", amount_commas(recording_count(r, blocks), text),
		100 * share);
}

static void put_share(FILE *out, const struct recording *r, const struct share *s, uint64_t all)
{
	char text[AMOUNT_SIZE];

	fprintf(out, "%15s ", amount_commas(s->bytes, text));
	if (r->interval)
		fprintf(out, "%-9s ", amount_error((double)s->bytes,
						   recording_error(r, s->variance), text));
	put_blocks(out, r, s->blocks, all ? (double)s->bytes / (double)all : 0);
}

static void put_threads(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	size_t threads = recording_rows(r, RECORDING_THREADS), shown = 0;
	struct share all = {0}, others = {0};
	struct share *of = sum_shares(r, &all);

	if (all.bytes || all.blocks)
		fprintf(out, "\nallocated by thread\n          bytes %s%12s  share  thread\n",
			r->interval ? " +- error " : "", "calls");
	for (; shown < threads && of[shown].blocks; shown++) {
		if (!row_limits_allow(limits, shown, of[shown].bytes, all.bytes))
			break;
		_cleanup_free_ char *label = thread_label(r, of[shown].thread);

		put_share(out, r, &of[shown], all.bytes);
		fprintf(out, "%s\n", label);
	}
	for (size_t i = shown; i < threads; i++)
		add_share(&others, &of[i]);
	if (others.blocks) {
		put_share(out, r, &others, all.bytes);
		fprintf(out, "[%zu other thread%s]\n", threads - shown, plural(threads - shown));
	}
	free(of);
}

/* -- histograms -- */

#define BUCKETS 65u /* of 64-bit numbers: 0, and then by the number of bits */

typedef void put_range(FILE *out, unsigned bucket);

static void put_sizes(FILE *out, unsigned bucket)
{
	uint64_t low = bucket ? UINT64_C(1) << (bucket - 1) : 0;
	char from[AMOUNT_SIZE], to[AMOUNT_SIZE];

	if (bucket < 2)
		fprintf(out, "%" PRIu64 "\n", low);
	else
		fprintf(out, "%s to %s\n", amount_commas(low, from),
			amount_commas(low + (low - 1), to));
}

static void put_lifetimes(FILE *out, unsigned bucket)
{
	uint64_t low = bucket ? UINT64_C(1) << (bucket - 1) : 0;
	char from[AMOUNT_SIZE], to[AMOUNT_SIZE];

	if (!bucket)
		fputs("below 1 us\n", out);
	else
		fprintf(out, "%s to %s us\n", amount_commas(low, from), amount_commas(2 * low, to));
}

/* What else ends a lifetime. */
static const char *release_text(const struct recording *r)
{
	return r->interval ? ", of samples: a realloc is a release, too" : "";
}

static void put_histogram(FILE *out, const struct recording *r, enum recording_table_id id,
			  put_range *put)
{
	const struct recording_table *t = &r->table[id];
	uint64_t sum[BUCKETS] = {0}, all = 0;

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t bucket = MIN(t->column[BUCKET_NUMBER][i], (uint64_t)BUCKETS - 1);

		sum[bucket] += t->column[BUCKET_COUNT][i];
		all += t->column[BUCKET_COUNT][i];
	}
	if (all)
		fprintf(out, "\n%s%s\n      blocks  share  %s\n",
			id == RECORDING_SIZES ? "sizes of allocated blocks" :
						"lifetimes of released blocks",
			id == RECORDING_SIZES ? "" : release_text(r),
			id == RECORDING_SIZES ? "bytes" : "time");
	for (unsigned i = 0; i < BUCKETS; i++) {
		if (!sum[i])
			continue;
		put_blocks(out, r, sum[i], (double)sum[i] / (double)all);
		put(out, i);
	}
}

void recording_spread_print(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	put_threads(out, r, limits);
	put_histogram(out, r, RECORDING_SIZES, put_sizes);
	put_histogram(out, r, RECORDING_LIFETIMES, put_lifetimes);
}

/* -- lifetimes -- */

/* Blocks of a call site. */
struct site_life {
	char *label;                   /* owned; the first member */
	struct life life;
};

typedef VEC(struct site_life) site_lives;

static int compare_blocks(const void *a, const void *b)
{
	uint64_t x = life_blocks(&((const struct site_life *)a)->life);
	uint64_t y = life_blocks(&((const struct site_life *)b)->life);

	return x == y ? text_compare(a, b) : x < y ? 1 : -1;
}

static bool merge_sites(struct site_life *to, struct site_life *from)
{
	if (text_compare(to, from) != 0)
		return false;
	life_add(&to->life, &from->life);
	free(from->label);
	return true;
}

/* Adds those of all call sites, the ones with most blocks first. */
static void find_sites(site_lives *sites, const struct recording *r)
{
	_cleanup_free_ struct life *life = lives_of_leaves(r);

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (life_blocks(&life[i]))
			*vec_add(sites) = (struct site_life){
				recording_site_label(r, recording_site(r, i)), life[i]};
	vec_sort(sites, text_compare);
	vec_merge(sites, merge_sites);
	vec_sort(sites, compare_blocks);
}

static void put_row(FILE *out, const struct recording *r, const struct site_life *site,
		    uint64_t all)
{
	_cleanup_free_ char *text = life_text(&site->life), *label = text_site_label(site->label);
	uint64_t blocks = life_blocks(&site->life);
	char commas[AMOUNT_SIZE];

	fprintf(out, "%12s %5.1f %%  %-31s %s\n", amount_commas(recording_count(r, blocks), commas),
		amount_percent(blocks, all), text, label);
}

void recording_lifetime_print(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	site_lives sites = {0};
	struct site_life others = {0};
	struct life sum = {0};
	size_t shown = 0;

	find_sites(&sites, r);
	for (size_t i = 0; i < sites.count; i++)
		life_add(&sum, &sites.data[i].life);
	uint64_t all = life_blocks(&sum);

	if (sites.count)
		fprintf(out, "\nlifetimes by call site%s\n%12s  share  %-31s %s\n",
			release_text(r), "blocks", "mean lifetime", "call site");
	while (shown < sites.count &&
	       row_limits_allow(limits, shown, life_blocks(&sites.data[shown].life), all))
		put_row(out, r, &sites.data[shown++], all);
	for (size_t i = shown; i < sites.count; i++)
		life_add(&others.life, &sites.data[i].life);
	size_t count = sites.count - shown;

	others.label = xasprintf("[%zu other place%s]", count, plural(count));
	if (count)
		put_row(out, r, &others, all);
	for (size_t i = 0; i < sites.count; i++)
		free(sites.data[i].label);
	free(others.label);
	vec_deinit(&sites);
}
