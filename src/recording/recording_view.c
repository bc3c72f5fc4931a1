#include "recording/recording_view.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "profile/cells.h"
#include "profile/estimate.h"

void recording_temporary_within(struct recording *r, uint64_t us)
{
	const struct recording_table *lifetimes = &r->table[RECORDING_LIFETIMES];
	struct recording_table *leaves = &r->table[RECORDING_LEAVES];
	struct recording_table *ends = &r->table[RECORDING_END];
	uint64_t buckets = 0, all = 0; /* bucket k: up to 1 << k, without it */

	while (UINT64_C(1) << buckets < us)
		buckets++;
	r->temporary_below = UINT64_C(1) << buckets;
	for (size_t i = 0; i < leaves->rows; i++)
		leaves->column[LEAF_TEMPORARY][i] = 0;
	for (size_t i = 0; i < lifetimes->rows; i++) {
		uint64_t count = lifetimes->column[BUCKET_COUNT][i];

		if (lifetimes->column[BUCKET_NUMBER][i] > buckets)
			continue;
		leaves->column[LEAF_TEMPORARY][lifetimes->column[BUCKET_LEAF][i] - 1] += count;
		all += count;
	}
	for (size_t i = 0; i < ends->rows; i++)
		ends->column[END_TEMPORARY][i] = all;
}

/* What the buckets of a leaf's lifetimes allow. */
struct lived_bounds {
	double least, most;
	bool has_some; /* blocks */
};

static struct lived_bounds *lived_bounds(const struct recording *r)
{
	const struct recording_table *t = &r->table[RECORDING_LIFETIMES];
	struct lived_bounds *bounds = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1,
					      sizeof(*bounds));

	for (size_t i = 0; i < t->rows; i++) {
		struct lived_bounds *b = &bounds[t->column[BUCKET_LEAF][i] - 1];
		int bucket = (int)MIN(t->column[BUCKET_NUMBER][i], UINT64_C(64));
		double blocks = (double)t->column[BUCKET_COUNT][i];

		b->least += bucket ? ldexp(blocks, bucket - 1) : 0;
		b->most += bucket ? ldexp(blocks, bucket) : 0;
		b->has_some = true;
	}
	return bounds;
}

double *recording_lived(const struct recording *r)
{
	_cleanup_free_ struct lived_bounds *bounds = lived_bounds(r);
	const struct recording_table *t = &r->table[RECORDING_LIVED];
	size_t leaves = recording_rows(r, RECORDING_LEAVES);
	double *lived = xcalloc(leaves + 1, sizeof(*lived));
	double unit = r->interval ? (double)ESTIMATE_UNIT : 1;

	for (size_t i = 0; i < leaves; i++)
		lived[i] = bounds[i].has_some ? NAN : 0;
	for (size_t i = 0; i < t->rows; i++) {
		size_t leaf = t->column[LIVED_LEAF][i] - 1;
		double sum = (double)t->column[LIVED_SUM][i];

		/* of sums beyond 2^63 more may be missing (history_leaf) */
		if (sum < 0x1p63 && sum >= bounds[leaf].least && sum <= bounds[leaf].most)
			lived[leaf] = sum / unit;
	}
	return lived;
}

static bool frame_matches(const struct recording *r, size_t frame, const regex_t *regex)
{
	uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);
	const uint64_t texts[] = {
		recording_get(r, RECORDING_FRAMES, frame, FRAME_FUNCTION),
		recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE),
		object ? recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH) : 0,
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i] && regexec(regex, r->text.data[texts[i]], 0, NULL, 0) == 0)
			return true;
	return false;
}

/* By node: whether it or one of its callers matches. */
static bool *matching_nodes(const struct recording *r, const regex_t *regex)
{
	size_t frames = recording_rows(r, RECORDING_FRAMES);
	size_t nodes = recording_rows(r, RECORDING_NODES);
	bool *frame = xcalloc(frames + 1, sizeof(*frame));
	bool *node = xcalloc(nodes + 1, sizeof(*node));

	for (size_t i = 0; i < frames; i++)
		frame[i] = frame_matches(r, i, regex);
	for (size_t i = 0; i < nodes; i++) {
		uint64_t parent = recording_get(r, RECORDING_NODES, i, NODE_PARENT);

		node[i] = frame[recording_get(r, RECORDING_NODES, i, NODE_FRAME)] ||
			  (parent && node[parent - 1]);
	}
	free(frame);
	return node;
}

static void copy_row(struct recording *r, enum recording_table_id id, size_t to, size_t from)
{
	for (unsigned c = 0; c < recording_table_info[id].columns; c++)
		r->table[id].column[c][to] = r->table[id].column[c][from];
}

/*
 * Numbers the rows of table @id whose value in @column is not 0 in @number, and replaces the
 * value.
 */
static void keep_rows(struct recording *r, enum recording_table_id id, unsigned column,
		      const uint64_t *number)
{
	struct recording_table *t = &r->table[id];
	size_t kept = 0;

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t value = number[t->column[column][i]];

		if (!value)
			continue;
		copy_row(r, id, kept, i);
		t->column[column][kept++] = value;
	}
	recording_truncate(r, id, kept);
}

/* The leaves of @is_wanted nodes: @number gets the new number of each, by index + 1. */
static void keep_leaves(struct recording *r, const bool *is_wanted, uint64_t *number)
{
	struct recording_table *t = &r->table[RECORDING_LEAVES];
	size_t kept = 0;

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t node = t->column[LEAF_NODE][i];

		if (!node || !is_wanted[node - 1])
			continue;
		copy_row(r, RECORDING_LEAVES, kept++, i);
		number[i + 1] = kept;
	}
	recording_truncate(r, RECORDING_LEAVES, kept);
}

static void keep_releases(struct recording *r, const bool *is_wanted)
{
	size_t nodes = recording_rows(r, RECORDING_NODES);
	uint64_t *number = xcalloc(nodes + 1, sizeof(*number));

	for (size_t i = 0; i < nodes; i++)
		number[i + 1] = is_wanted[i] ? i + 1 : 0;
	keep_rows(r, RECORDING_RELEASES, RELEASE_NODE, number);
	free(number);
}

int recording_keep_matches(struct recording *r, const char *match, char **why_out)
{
	regex_t regex;
	char text[256];
	int rc = regcomp(&regex, match, REG_EXTENDED | REG_NOSUB);

	if (rc != 0) {
		regerror(rc, &regex, text, sizeof(text));
		*why_out = xasprintf("--match=%s: %s", match, text);
		return -EINVAL;
	}
	bool *node = matching_nodes(r, &regex);
	uint64_t *number = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1, sizeof(*number));

	keep_leaves(r, node, number);
	for (int id = 0; id < RECORDING_TABLES; id++)
		for (unsigned c = 0; c < recording_table_info[id].columns; c++)
			if (recording_table_info[id].column[c].to == RECORDING_LEAVES)
				keep_rows(r, (enum recording_table_id)id, c, number);
	keep_releases(r, node);
	free(number);
	free(node);
	regfree(&regex);
	return 0;
}

/* Computes the values of leaves for a view. */

/* -- times -- */

static size_t intervals(const struct recording *r)
{
	return recording_rows(r, RECORDING_TIMELINE);
}

static double interval_ms(const struct recording *r)
{
	return (double)(UINT64_C(1) << r->shift);
}

/* The duration in seconds: to the end of the last interval. */
static double whole(const struct recording *r)
{
	return (double)(UINT64_C(1) << r->shift) * (double)intervals(r) / 1000;
}

/* As amount_parse_age, with shares of @all ms; no later. */
static bool parse_ms(const char *text, double all, double *out)
{
	struct amount_age age;

	if (!amount_parse_age(text, &age))
		return false;
	*out = age.seconds * 1000 + all * age.percent / 100;
	return *out <= all;
}

bool recording_time_parse(const char *text, double all, double *ms_out)
{
	if (strcmp(text, "start") != 0 && strcmp(text, "end") != 0)
		return parse_ms(text, all, ms_out);
	*ms_out = *text == 's' ? 0 : all;
	return true;
}

static bool parse_time(const struct recording *r, const char *text, size_t size, uint32_t *out)
{
	char copy[64];

	if (!size || size >= sizeof(copy) || !intervals(r))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	double width = interval_ms(r), value;

	if (!recording_time_parse(copy, width * (double)intervals(r), &value))
		return false;
	*out = (uint32_t)fmin(value / width, (double)intervals(r) - 1);
	return true;
}

/* Blocks are older if their whole interval is: to be sure, some older ones are left out. */
static int parse_age(const struct recording *r, const char *text, struct recording_view *v)
{
	double age;

	if (!intervals(r) || !parse_ms(text, recording_duration(r), &age))
		return -EINVAL;
	double whole_intervals = (recording_duration(r) - age) / interval_ms(r);

	v->first = (uint32_t)(age > 0 ? fmin(whole_intervals, (double)intervals(r)) :
					(double)intervals(r));
	v->last = (uint32_t)intervals(r) - 1;
	v->older_ms = age;
	return 0;
}

static int parse_range(const struct recording *r, const char *text, struct recording_view *v)
{
	const char *dots = strstr(text, "..");

	if (!dots || !parse_time(r, text, (size_t)(dots - text), &v->first) ||
	    !parse_time(r, dots + 2, strlen(dots + 2), &v->last) || v->first > v->last)
		return -EINVAL;
	return 0;
}

/* The caller frees it. */
static char *explain_range(const struct recording *r, const char *text)
{
	uint32_t one;

	if (!strstr(text, "..") && parse_time(r, text, strlen(text), &one))
		return xasprintf("--range takes two times, T1..T2, not '%s': --range=%s..end is "
				 "from then on, and --at=%s what was live then", text, text, text);
	return xasprintf("--range takes two times of the recording, T1..T2 (each 2.5, 300ms, 40%%, "
			 "start or end, the first no later than the second), up to %.3f s, not "
			 "'%s'", whole(r), text);
}

/* -- values -- */

void recording_value_add(struct recording_value *to, const struct recording_value *from)
{
	to->bytes += from->bytes;
	to->blocks += from->blocks;
	to->variance += from->variance;
}

/* The columns with the values of leaves in a table. */
struct value_columns {
	uint8_t leaf, bytes, blocks, variance;
};

static void add_row(struct recording_view *v, const struct recording_table *t, size_t row,
		    const struct value_columns *c)
{
	const struct recording_value value = {t->column[c->bytes][row], t->column[c->blocks][row],
					      (double)t->column[c->variance][row]};

	recording_value_add(&v->leaf[t->column[c->leaf][row] - 1], &value);
}

static void add_cells(struct recording_view *v, const struct recording *r)
{
	static const struct value_columns columns = {CELL_LEAF, CELL_BYTES, CELL_BLOCKS,
						     CELL_VARIANCE};
	const struct recording_table *t = &r->table[RECORDING_CELLS];

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t born = t->column[CELL_BORN][i], died = t->column[CELL_DIED][i];
		bool is_in = born == CELL_BEFORE	 ? v->quantity != VIEW_RANGE :
			     v->quantity == VIEW_OLDER ? born < v->first :
							 born >= v->first && born <= v->last;

		if (is_in && (died > v->last || died == CELL_NEVER))
			add_row(v, t, i, &columns);
	}
}

static void add_peak(struct recording_view *v, const struct recording *r)
{
	static const struct value_columns columns = {PEAK_LEAF, PEAK_BYTES, PEAK_BLOCKS,
						     PEAK_VARIANCE};
	const struct recording_table *t = &r->table[RECORDING_PEAK];

	for (size_t i = 0; i < t->rows; i++)
		add_row(v, t, i, &columns);
}

/* With samples, reallocs are among the allocations; otherwise they are counted beside them. */
static void add_totals(struct recording_view *v, const struct recording *r)
{
	const struct recording_table *t = &r->table[RECORDING_LEAVES];

	for (size_t i = 0; i < t->rows; i++) {
		if (v->quantity == VIEW_TEMPORARY)
			v->leaf[i].blocks = t->column[LEAF_TEMPORARY][i];
		else
			v->leaf[i] = (struct recording_value){
				t->column[LEAF_BYTES][i],
				t->column[LEAF_ALLOCATIONS][i] +
					(r->interval ? 0 : t->column[LEAF_REALLOCS][i]),
				(double)t->column[LEAF_VARIANCE][i]};
	}
}

static void add_shares(struct recording_view *v, const struct recording *r, const bool *is_wanted)
{
	static const struct value_columns columns = {SHARE_LEAF, SHARE_BYTES, SHARE_BLOCKS,
						     SHARE_VARIANCE};
	const struct recording_table *t = &r->table[RECORDING_SHARES];

	for (size_t i = 0; i < t->rows; i++)
		if (is_wanted[t->column[SHARE_THREAD][i]])
			add_row(v, t, i, &columns);
}

/* -- threads -- */

/* Finds the threads with id or name @text: false if there are none. */
static bool find_threads(const struct recording *r, const char *text, bool *is_wanted)
{
	bool found = false;

	for (size_t i = 0; i < recording_rows(r, RECORDING_THREADS); i++) {
		char key[32], id[16];

		snprintf(id, sizeof(id), "%u",
			 (unsigned)recording_get(r, RECORDING_THREADS, i, THREAD_ID));
		snprintf(key, sizeof(key), "thread.%s", id);
		const char *name = recording_meta(r, key);

		is_wanted[i] = strcmp(text, id) == 0 || (name && strcmp(text, name) == 0);
		found |= is_wanted[i];
	}
	return found;
}

static int view_thread(struct recording_view *v, const struct recording *r, const char *thread,
		       char **why_out)
{
	bool *is_wanted = xcalloc(recording_rows(r, RECORDING_THREADS) + 1, sizeof(*is_wanted));
	bool found = find_threads(r, thread, is_wanted);

	v->quantity = VIEW_TOTAL;
	if (found)
		add_shares(v, r, is_wanted);
	else
		*why_out = xasprintf("no thread of id or name '%s' allocated anything", thread);
	free(is_wanted);
	return found ? 0 : -EINVAL;
}

/* -- views -- */

static int view_older(struct recording_view *v, const struct recording *r, const char *age,
		      char **why_out)
{
	v->quantity = VIEW_OLDER;
	if (parse_age(r, age, v) != 0) {
		*why_out = xasprintf("--older-than takes an age of blocks (2.5, 300ms or 40%%), "
				     "up to %.3f s, not '%s'",
				     recording_duration(r) / 1000, age);
		return -EINVAL;
	}
	add_cells(v, r);
	return 0;
}

void recording_view_empty(struct recording_view *v, const struct recording *r)
{
	*v = (struct recording_view){
		.leaf = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1, sizeof(*v->leaf)),
	};
}

static void end(struct recording_view *v, const struct recording *r)
{
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		recording_value_add(&v->sum, &v->leaf[i]);
}

bool recording_question_is_given(const struct recording_question *q)
{
	return q->at || q->range || q->older || q->thread || q->match;
}

int recording_view_init(struct recording_view *v, const struct recording *r,
			const struct recording_question *q, char **why_out)
{
	int rc = 0;

	recording_view_empty(v, r);
	if (q->thread) {
		rc = view_thread(v, r, q->thread, why_out);
	} else if (q->older) {
		rc = view_older(v, r, q->older, why_out);
	} else if (q->range) {
		v->quantity = VIEW_RANGE;
		rc = parse_range(r, q->range, v);
		if (rc != 0)
			*why_out = explain_range(r, q->range);
		else
			add_cells(v, r);
	} else if (q->at && strcmp(q->at, "peak") != 0) {
		v->quantity = VIEW_AT;
		if (!parse_time(r, q->at, strlen(q->at), &v->last)) {
			rc = -EINVAL;
			*why_out = xasprintf("--at takes a time of the recording (2.5, 300ms, "
					     "40%%, start, peak or end), up to %.3f s, not '%s'",
					     whole(r), q->at);
		} else {
			add_cells(v, r);
		}
	} else {
		add_peak(v, r);
	}
	end(v, r);
	if (rc != 0)
		recording_view_deinit(v);
	return rc;
}

void recording_view_of(struct recording_view *v, const struct recording *r,
		       enum recording_quantity quantity)
{
	recording_view_empty(v, r);
	v->quantity = quantity;
	v->last = intervals(r) ? (uint32_t)intervals(r) - 1 : 0;
	if (quantity == VIEW_PEAK)
		add_peak(v, r);
	else if (quantity == VIEW_TOTAL || quantity == VIEW_TEMPORARY)
		add_totals(v, r);
	else
		add_cells(v, r);
	end(v, r);
}

static void add_leaked(struct recording_view *v, const struct recording *r, uint64_t leaf,
		       struct recording_value value)
{
	if (leaf > 0 && leaf <= recording_rows(r, RECORDING_LEAVES))
		recording_value_add(&v->leaf[leaf - 1], &value);
}

static bool is_leak_of(const char *kind, const char *wanted)
{
	if (strcmp(wanted, "lost") == 0)
		return strcmp(kind, "definite") == 0 || strcmp(kind, "indirect") == 0;
	return strcmp(kind, wanted) == 0;
}

void recording_view_leaks(struct recording_view *v, const struct recording *r, const char *kind,
			  double older_ms)
{
	bool is_older = older_ms > 0;
	const struct recording_table *t =
		&r->table[is_older ? RECORDING_LEAK_AGES : RECORDING_LEAKS];
	unsigned blocks = is_older ? LEAK_AGE_BLOCKS : LEAK_BLOCKS;

	_Static_assert((int)LEAK_LEAF == LEAK_AGE_LEAF && (int)LEAK_KIND == LEAK_AGE_KIND &&
		       LEAK_BYTES - LEAK_BLOCKS == LEAK_AGE_BYTES - LEAK_AGE_BLOCKS, "alike");
	recording_view_empty(v, r);
	v->quantity = VIEW_LEAKED;
	for (size_t i = 0; i < t->rows; i++) {
		if (is_leak_of(r->text.data[t->column[LEAK_KIND][i]], kind) &&
		    (!is_older || (double)t->column[LEAK_AGE_LEAST][i] >= older_ms))
			add_leaked(v, r, t->column[LEAK_LEAF][i],
				   (struct recording_value){t->column[blocks + 1][i],
							    t->column[blocks][i], 0});
	}
	end(v, r);
}

void recording_view_at(struct recording_view *v, const struct recording *r, uint32_t interval)
{
	recording_view_empty(v, r);
	v->quantity = VIEW_AT;
	v->last = interval;
	add_cells(v, r);
	end(v, r);
}

void recording_view_deinit(struct recording_view *v)
{
	free(v->leaf);
	v->leaf = NULL;
}

static char *describe(const struct recording_view *v, const struct recording *r,
		      const struct recording_question *q)
{
	double width = (double)(UINT64_C(1) << r->shift) / 1000;

	switch (v->quantity) {
	case VIEW_AT:
		return xasprintf("live after %.3f s", width * (v->last + 1));
	case VIEW_RANGE:
		return xasprintf("allocated from %.3f s to %.3f s, and still live then",
				 width * v->first, width * (v->last + 1));
	case VIEW_OLDER:
		return xasprintf("live at the end, and at least %.3f s old",
				 fmax(recording_duration(r) / 1000 - width * v->first, 0));
	case VIEW_TOTAL:
		return q->thread ? xasprintf("ever allocated by thread %s", q->thread) :
				   xstrdup("ever allocated");
	case VIEW_TEMPORARY:
		return xstrdup("temporary allocations");
	case VIEW_LEAKED:
		return xstrdup("leaked");
	case VIEW_PEAK:
		break;
	}
	return xstrdup("live at the peak");
}

char *recording_view_text(const struct recording_view *v, const struct recording *r,
			  const struct recording_question *q)
{
	_cleanup_free_ char *text = describe(v, r, q);
	_cleanup_free_ char *note = sampling_note(r->interval, recording_longest_interval(r));

	return xasprintf("%s%s", text, note);
}
