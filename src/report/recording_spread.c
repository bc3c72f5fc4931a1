/*
 * How the blocks of a recording are spread over threads, sizes and lifetimes, and how long those
 * of each call site lived, as text.
 */
#include "report/recording_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "profile/cells.h"
#include "recording/recording_site.h"
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
		fprintf(out, "\n%s\n      blocks  share  %s\n",
			id == RECORDING_SIZES ? "sizes of allocated blocks" :
						"lifetimes of released blocks",
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

#define TIME_SIZE 32

/* Blocks of a call site. Seconds are sums over blocks. */
struct life {
	char *label;                   /* owned */
	uint64_t released, live;
	double lived, aged;
};

static void add_released(const struct recording *r, struct life *of_leaf, double longest)
{
	const struct recording_table *t = &r->table[RECORDING_LIFETIMES];

	for (size_t i = 0; i < t->rows; i++) {
		struct life *life = &of_leaf[t->column[BUCKET_LEAF][i] - 1];
		uint64_t bucket = t->column[BUCKET_NUMBER][i], blocks = t->column[BUCKET_COUNT][i];
		double middle = bucket ? ldexp(0.75e-6, (int)MIN(bucket, UINT64_C(64))) : 0.5e-6;

		life->released += blocks;
		life->lived += (double)blocks * fmin(middle, longest);
	}
}

static void add_live(const struct recording *r, struct life *of_leaf, double end)
{
	const struct recording_table *t = &r->table[RECORDING_CELLS];
	double width = (double)(UINT64_C(1) << r->shift) / 1000;

	for (size_t i = 0; i < t->rows; i++) {
		struct life *life = &of_leaf[t->column[CELL_LEAF][i] - 1];
		uint64_t born = t->column[CELL_BORN][i], blocks = t->column[CELL_BLOCKS][i];
		double begin = born == CELL_BEFORE ? 0 : width * (double)born;
		double middle = (begin + fmin(begin + width, end)) / 2;

		if (t->column[CELL_DIED][i] != CELL_NEVER)
			continue;
		life->live += blocks;
		life->aged += (double)blocks * fmax(0, end - middle);
	}
}

/* -- call sites -- */

static void add_life(struct life *to, const struct life *from)
{
	to->released += from->released;
	to->live += from->live;
	to->lived += from->lived;
	to->aged += from->aged;
}

static uint64_t count_blocks(const struct life *life)
{
	return life->released + life->live;
}

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct life *)a)->label, ((const struct life *)b)->label);
}

static int compare_blocks(const void *a, const void *b)
{
	uint64_t x = count_blocks(a), y = count_blocks(b);

	return x == y ? compare_labels(a, b) : x < y ? 1 : -1;
}

static char *site_label(const struct recording *r, size_t leaf)
{
	int64_t node = recording_site(r, leaf);

	return node < 0 ? xstrdup("[unknown]") :
			  recording_frame_label(r, recording_get(r, RECORDING_NODES, (size_t)node,
								 NODE_FRAME));
}

/* Merges the leaves of each call site in @life; returns how many remain, in order. */
static size_t merge_sites(const struct recording *r, struct life *life)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!count_blocks(&life[i]))
			continue;
		life[count] = life[i];
		life[count++].label = site_label(r, i);
	}
	if (count > 1)
		qsort(life, count, sizeof(*life), compare_labels);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_labels(&life[kept - 1], &life[i])) {
			add_life(&life[kept - 1], &life[i]);
			free(life[i].label);
		} else {
			life[kept++] = life[i];
		}
	}
	if (kept > 1)
		qsort(life, kept, sizeof(*life), compare_blocks);
	return kept;
}

/* -- text -- */

static const char *time_text(double seconds, char out[static TIME_SIZE])
{
	static const struct {
		double least, unit;
		const char *name;
	} units[] = {{1, 1, "s"}, {1e-3, 1e-3, "ms"}, {0, 1e-6, "us"}};
	size_t i = 0;

	while (seconds < units[i].least)
		i++;
	double value = seconds / units[i].unit;

	snprintf(out, TIME_SIZE, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value,
		 units[i].name);
	return out;
}

/* "12.0 ms, 90.0 % live, >= 3.20 s"; the caller frees it. */
static char *life_text(const struct life *life)
{
	char lived[TIME_SIZE], aged[TIME_SIZE];
	double released = (double)life->released, live = (double)life->live;

	if (life->released)
		time_text(life->lived / released, lived);
	if (life->live)
		time_text(life->aged / live, aged);
	if (!life->live)
		return xstrdup(lived);
	if (!life->released)
		return xasprintf("live, >= %s", aged);
	return xasprintf("%s, %.1f %% live, >= %s", lived, 100 * live / (released + live), aged);
}

static void put_row(FILE *out, const struct recording *r, const struct life *life, uint64_t all)
{
	_cleanup_free_ char *text = life_text(life), *label = text_site_label(life->label);
	uint64_t blocks = count_blocks(life);
	char commas[AMOUNT_SIZE];

	fprintf(out, "%12s %5.1f %%  %-31s %s\n", amount_commas(recording_count(r, blocks), commas),
		100 * (double)blocks / (double)all, text, label);
}

void recording_lifetime_print(FILE *out, const struct recording *r, const struct row_limits *limits)
{
	struct life *life = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1, sizeof(*life));
	struct life all = {0}, others = {0};
	size_t shown = 0;

	add_released(r, life, recording_duration(r) / 1000);
	add_live(r, life, recording_duration(r) / 1000);
	size_t count = merge_sites(r, life);

	for (size_t i = 0; i < count; i++)
		add_life(&all, &life[i]);
	if (count)
		fprintf(out, "\nlifetimes by call site\n%12s  share  %-31s %s\n", "blocks",
			"mean lifetime", "call site");
	for (; shown < count; shown++) {
		uint64_t blocks = count_blocks(&life[shown]);

		if (!row_limits_allow(limits, shown, blocks, count_blocks(&all)))
			break;
		put_row(out, r, &life[shown], count_blocks(&all));
	}
	for (size_t i = shown; i < count; i++)
		add_life(&others, &life[i]);
	others.label = xasprintf("[%zu other place%s]", count - shown, plural(count - shown));
	if (shown < count)
		put_row(out, r, &others, count_blocks(&all));
	for (size_t i = 0; i < count; i++)
		free(life[i].label);
	free(others.label);
	free(life);
}
