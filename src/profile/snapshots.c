/*
 * Snapshots: when one is taken, which ones are deleted, and the bytes of leaves. See
 * profile_update.h for the journals.
 *
 * Culling deletes records from the middle. The journal of a deleted detailed record has the old
 * values of its leaves. For a leaf that did not change before, the previous detailed record needs
 * the same value: so the journal is merged into that one, where existing entries win. Hence the
 * journals contain a leaf at most once for each record that is kept.
 */
#include "profile/profile_update.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define SMALLEST_TABLE 10u

/* Massif's line of -v -v: "S" is a snapshot, "Sd" a detailed one, "Sp" the peak. */
static void say(const struct snapshots *s, const char *what, uint32_t i)
{
	if (!log_is_on(LOG_DEBUG))
		return;
	const struct snapshot *now = &s->record[i].snapshot;
	char kind = now->kind == SNAPSHOT_PEAK ? 'p' : now->kind == SNAPSHOT_DETAILED ? 'd' : '.';
	log_debug("process %u: %s S%c%3u (t:%lu, hp:%lu, ex:%lu, st:%lu)", s->process, what, kind,
		  i, now->time,
		  now->heap, now->extra, now->stacks);
}

/*
 * What a total must exceed to be a new peak. Any inaccuracy is possible; the sum wraps as in
 * Massif.
 */
static uint64_t peak_limit(const struct snapshots *s)
{
	double excess = (double)s->peak_total * s->peak_inaccuracy / 100;
	if (!(excess < 9e18 && excess > -9e18))
		return UINT64_MAX;
	return s->peak_total + (uint64_t)(int64_t)excess;
}

void snapshots_init(struct snapshots *s, const struct profile_options *options)
{
	CHECK(options->max_snapshots >= SMALLEST_TABLE && options->detailed_freq > 0);
	*s = (struct snapshots){
		.record = xcalloc(options->max_snapshots, sizeof(*s->record)),
		.max = options->max_snapshots,
		.detailed_freq = options->detailed_freq,
		.process = options->process,
		.peak_inaccuracy = options->peak_inaccuracy,
	};
	s->peak_limit = peak_limit(s);
}

void snapshots_deinit(struct snapshots *s)
{
	for (uint32_t i = 0; i < s->count; i++)
		vec_deinit(&s->record[i].journal);
	free(s->record);
}

void snapshots_clone(struct snapshots *to, const struct snapshots *from)
{
	*to = *from;
	to->record = xmemdup(from->record, from->max * sizeof(*from->record));
	for (uint32_t i = 0; i < to->count; i++) {
		struct snapshot_record *r = &to->record[i];
		if (!r->journal.data)
			continue;
		r->journal.data = xmemdup(r->journal.data,
					  r->journal.count * sizeof(*r->journal.data));
		r->journal.capacity = r->journal.count;
	}
}

/* Culling. */

static bool is_uncullable(const struct snapshots *s, uint32_t i)
{
	return i == 0 || i == s->count - 1 || s->record[i].snapshot.kind == SNAPSHOT_PEAK;
}

/* The nearest existing neighbour of @i in direction @step. */
static uint32_t neighbour(const bool *is_gone, uint32_t i, int step)
{
	do {
		i += (uint32_t)step;
	} while (is_gone[i]);
	return i;
}

static uint64_t span_around(const struct snapshots *s, const bool *is_gone, uint32_t i)
{
	return s->record[neighbour(is_gone, i, 1)].snapshot.time -
	       s->record[neighbour(is_gone, i, -1)].snapshot.time;
}

static void log_culled(const struct snapshots *s, uint32_t nth, uint64_t span, uint32_t i)
{
	char what[64];
	if (!log_is_on(LOG_DEBUG)) /* millions of records are culled */
		return;
	snprintf(what, sizeof(what), " %3u (t-span = %lu)", nth, span);
	say(s, what, i);
}

/* The record with the smallest span between its neighbours; the first of equals; 0 = none. */
static uint32_t find_cullable(const struct snapshots *s, const bool *is_gone)
{
	uint64_t best_span = 0;
	uint32_t best = 0;
	for (uint32_t i = 1; i + 1 < s->count; i++) {
		if (is_gone[i] || is_uncullable(s, i))
			continue;
		uint64_t span = span_around(s, is_gone, i);
		if (!best || span < best_span) {
			best = i;
			best_span = span;
		}
	}
	return best;
}

/*
 * Adds to @to the entries of @from for leaves that existed at @to and have no entry there. @marks:
 * existing entries.
 */
static void merge_journal(struct snapshot_record *to, const struct snapshot_record *from,
			  uint8_t *marks)
{
	for (size_t i = 0; i < from->journal.count; i++) {
		struct journal_entry e = from->journal.data[i];
		uint8_t bit = (uint8_t)(1u << e.leaf % 8);
		if (e.leaf > to->leaf_count || (marks[e.leaf / 8] & bit))
			continue;
		marks[e.leaf / 8] |= bit;
		*vec_add(&to->journal) = e;
	}
}

/* Merges the journals of the deleted records into the remaining detailed ones. */
static void merge_journals(struct snapshots *s, const bool *is_gone)
{
	uint32_t leaf_max = 0;
	for (uint32_t i = 0; i < s->count; i++)
		leaf_max = MAX(leaf_max, s->record[i].leaf_count);
	uint8_t *marks = xmalloc(leaf_max / 8 + 1);
	struct snapshot_record *keeper = NULL;
	bool is_marked = false;
	for (uint32_t i = 0; i < s->count; i++) {
		struct snapshot_record *r = &s->record[i];
		if (!r->epoch)
			continue;
		if (!is_gone[i]) {
			keeper = r;
			is_marked = false;
			continue;
		}
		if (keeper && !is_marked) {
			memset(marks, 0, leaf_max / 8 + 1);
			for (size_t k = 0; k < keeper->journal.count; k++) {
				uint32_t leaf = keeper->journal.data[k].leaf;

				marks[leaf / 8] |= (uint8_t)(1u << leaf % 8);
			}
			is_marked = true;
		}
		if (keeper)
			merge_journal(keeper, r, marks);
		vec_deinit(&r->journal);
	}
	free(marks);
}

static void compact(struct snapshots *s, const bool *is_gone)
{
	uint32_t to = 0;
	s->epoch = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		if (is_gone[i])
			continue;
		s->record[to] = s->record[i];
		if (s->record[to].epoch) {
			s->newest = to;
			s->epoch = s->record[to].epoch;
		}
		to++;
	}
	memset(&s->record[to], 0, (s->count - to) * sizeof(*s->record));
	s->count = to;
}

static uint64_t smallest_interval(const struct snapshots *s)
{
	uint64_t min = INT64_MAX;
	uint32_t end = 1;
	for (uint32_t i = 1; i < s->count; i++) {
		if (is_uncullable(s, i) && is_uncullable(s, i - 1))
			continue;
		uint64_t interval = s->record[i].snapshot.time - s->record[i - 1].snapshot.time;
		if (interval < min) {
			min = interval;
			end = i;
		}
	}
	log_debug("process %u: New time interval = %lu (between snapshots %u and %u)", s->process,
		  min, end - 1, end);
	return min;
}

/*
 * Many events at one time (a coarse clock) have spans of 0. Spans only grow when records are
 * deleted, so one pass finds those of 0 in the order in which find_cullable would. Marks at most
 * @wanted; returns how many.
 */
static uint32_t cull_zero_spans(const struct snapshots *s, bool *is_gone, uint32_t wanted)
{
	uint32_t before = 0, gone = 0;
	for (uint32_t i = 1; i + 1 < s->count && gone < wanted; i++) {
		uint64_t span = s->record[i + 1].snapshot.time - s->record[before].snapshot.time;
		if (span == 0 && !is_uncullable(s, i)) {
			is_gone[i] = true;
			log_culled(s, gone++, 0, i);
		} else {
			before = i;
		}
	}
	return gone;
}

static void log_kept(const struct snapshots *s)
{
	log_debug("process %u: Finished culling (%3u of %3u deleted)", s->process, s->max / 2,
		  s->max);
	for (uint32_t i = 0; i < s->count; i++)
		say(s, "  post-cull", i);
}

/* Halves the table; returns the new minimum interval between normal snapshots. */
static uint64_t cull(struct snapshots *s)
{
	bool *is_gone = xcalloc(s->count, sizeof(*is_gone));
	log_debug("process %u: Culling...", s->process);
	for (uint32_t i = cull_zero_spans(s, is_gone, s->max / 2); i < s->max / 2; i++) {
		uint32_t victim = find_cullable(s, is_gone);
		CHECK(victim);
		is_gone[victim] = true;
		log_culled(s, i, span_around(s, is_gone, victim), victim);
	}
	merge_journals(s, is_gone);
	compact(s, is_gone);
	free(is_gone);
	log_kept(s);
	return smallest_interval(s);
}

/* Taking. */

static void take(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
		 enum snapshot_kind kind, const char *what)
{
	struct snapshot_record *r = &s->record[s->count];
	*r = (struct snapshot_record){ .snapshot = *now, .leaf_count = leaf_count };
	r->snapshot.kind = kind;
	if (kind == SNAPSHOT_EMPTY) {
		s->since_detailed++;
	} else {
		CHECK(s->last_epoch < UINT32_MAX);
		s->since_detailed = 0;
		s->newest = s->count;
		s->epoch = r->epoch = ++s->last_epoch;
	}
	say(s, what, s->count);
	s->count++;
	if (s->count == s->max)
		s->min_interval = cull(s);
	if (__builtin_add_overflow(now->time, s->min_interval, &s->earliest))
		s->earliest = UINT64_MAX;
}

void snapshots_try_normal(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			  const char *what)
{
	if (now->time < s->earliest)
		return;
	bool is_detailed = s->since_detailed == s->detailed_freq - 1;
	take(s, now, leaf_count, is_detailed ? SNAPSHOT_DETAILED : SNAPSHOT_EMPTY, what);
}

void snapshots_try_peak(struct snapshots *s, const struct snapshot *now, uint32_t leaf_count,
			const char *what)
{
	uint64_t total = now->heap + now->extra + now->stacks;
	if (total <= s->peak_limit)
		return;
	for (uint32_t i = 0; i < s->count; i++)
		if (s->record[i].snapshot.kind == SNAPSHOT_PEAK)
			s->record[i].snapshot.kind = SNAPSHOT_DETAILED;
	s->peak_total = total;
	s->peak_limit = peak_limit(s);
	take(s, now, leaf_count, SNAPSHOT_PEAK, what);
}

/* Leaves. */

void snapshots_save_leaf(struct snapshots *s, struct leaf *leaf, uint32_t index)
{
	if (leaf->epoch >= s->epoch)
		return;
	leaf->epoch = s->epoch;
	*vec_add(&s->record[s->newest].journal) = (struct journal_entry){
		.leaf = index,
		.bytes_low = (uint32_t)leaf->live_bytes,
		.bytes_high = (uint32_t)(leaf->live_bytes >> 32),
	};
}

size_t snapshots_memory(const struct snapshots *s)
{
	size_t bytes = s->max * sizeof(*s->record);
	for (uint32_t i = 0; i < s->count; i++)
		bytes += s->record[i].journal.capacity * sizeof(struct journal_entry);
	return bytes;
}

/* Of a profile. */

/* Converts @bytes (live values by leaf, @leaf_count the highest) to those of record @i. */
static void undo(const struct snapshots *s, uint32_t i, uint64_t *bytes, uint32_t leaf_count)
{
	for (uint32_t k = s->count; k-- > i;) {
		const struct snapshot_record *r = &s->record[k];
		for (size_t j = 0; j < r->journal.count; j++) {
			struct journal_entry e = r->journal.data[j];
			CHECK(e.leaf <= leaf_count);
			bytes[e.leaf] = (uint64_t)e.bytes_high << 32 | e.bytes_low;
		}
	}
}

uint32_t profile_snapshot_count(const struct profile *p)
{
	return p->snapshots.count;
}

const struct snapshot *profile_snapshot(const struct profile *p, uint32_t i)
{
	CHECK(i < p->snapshots.count);
	return &p->snapshots.record[i].snapshot;
}

uint32_t profile_snapshot_leaves(const struct profile *p, uint32_t i, uint64_t **bytes_out)
{
	uint32_t all = (uint32_t)p->leaf.count - 1, count = leaves_shown(p);
	uint64_t *bytes = xcalloc((size_t)all + 1, sizeof(*bytes));
	for (uint32_t leaf = 1; leaf <= count; leaf++)
		bytes[leaf] = p->leaf.data[leaf].live_bytes;
	if (i != UINT32_MAX) {
		CHECK(i < p->snapshots.count);
		CHECK(p->snapshots.record[i].snapshot.kind != SNAPSHOT_EMPTY);
		undo(&p->snapshots, i, bytes, all);
		count = p->snapshots.record[i].leaf_count;
	}
	*bytes_out = bytes;
	return count;
}

void profile_current(const struct profile *p, uint64_t time_ns, struct snapshot *out)
{
	*out = state_now(p);
	out->kind = SNAPSHOT_EMPTY;
	if (p->options.time_unit == TIME_MS && p->has_first)
		out->time = (MAX(time_ns, p->now_ns) - p->first_ns) / 1000000;
	if (p->options.time_unit == TIME_INSTRUCTIONS)
		out->time = MAX(out->time, p->options.instructions(p->options.instructions_ctx));
}
