/*
 * Puts together a recording from the profile, its values and the blocks of a leak check, and
 * writes it.
 */
#include "session/record/recording_complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "leak/leakcheck.h"
#include "output/leaks.h"
#include "output/outfile.h"
#include "profile/cells.h"
#include "profile/history.h"
#include "recording/recording.h"
#include "recording/recording_build.h"
#include "recording/recording_format.h"
#include "recording/recording_reduce.h"
#include "session/record/recording_values.h"
#include "session/out.h"
#include "session/session.h"

/* Tables of a leak check. */

static const char *const leak_kinds[] = {
	[LEAKCHECK_DEFINITE] = "definite", [LEAKCHECK_INDIRECT] = "indirect",
	[LEAKCHECK_POSSIBLE] = "possible", [LEAKCHECK_REACHABLE] = "reachable",
};

static void add_blocks(struct recording *r, const struct leakcheck *c)
{
	struct cells sum = {0};
	struct cell *cell;

	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct leakcheck_block *b = &c->blocks.data[i];
		const struct cell one = {b->leaf, c->state[i], 0, 1, b->size, 0};

		cells_add(&sum, &one);
	}
	size_t n = cells_sorted(&sum, &cell);

	for (size_t i = 0; i < n; i++)
		recording_add(r, RECORDING_LEAKS, (uint64_t[LEAK_COLUMNS]){
			cell[i].leaf, recording_string(r, leak_kinds[cell[i].born]), cell[i].blocks,
			cell[i].bytes});
	free(cell);
	cells_deinit(&sum);
}

#define AGE_BITS 4 /* ages in a row differ by a sixteenth at most */

/* The number of the row for @age, in ms. */
static uint16_t age_row(uint64_t age)
{
	unsigned shift = age >> AGE_BITS ? 63 - (unsigned)__builtin_clzll(age) - AGE_BITS : 0;

	return (uint16_t)((shift << AGE_BITS) + (age >> shift));
}

/* The least age of a row; that of the next one is more than any of its ages. */
static uint64_t age_of_row(unsigned row)
{
	unsigned shift = row >> (AGE_BITS + 1) ? (row >> AGE_BITS) - 1 : 0;

	return (uint64_t)(row - (shift << AGE_BITS)) << shift;
}

static void add_ages(struct recording *r, const struct leakcheck *c, uint64_t now_ms)
{
	const uint16_t rows = age_row(UINT32_MAX) + 1;
	struct cells sum = {0};
	struct cell *cell;

	for (size_t i = 0; i < c->blocks.count; i++) {
		const struct leakcheck_block *b = &c->blocks.data[i];
		bool is_follower = c->state[i] == LEAKCHECK_INDIRECT;
		uint64_t time = is_follower ? c->blocks.data[c->leader[i]].time : b->time;
		uint16_t row = age_row((uint32_t)(now_ms - MIN(time, now_ms)));
		const struct cell one = {b->leaf, c->state[i] * rows + row, 0, 1, b->size, 0};

		cells_add(&sum, &one);
	}
	size_t n = cells_sorted(&sum, &cell);

	for (size_t i = 0; i < n; i++) {
		const char *kind = leak_kinds[cell[i].born / rows];
		unsigned row = cell[i].born % rows;

		recording_add(r, RECORDING_LEAK_AGES, (uint64_t[LEAK_AGE_COLUMNS]){
			cell[i].leaf, recording_string(r, kind), age_of_row(row),
			MIN(age_of_row(row + 1) - 1, now_ms), cell[i].blocks, cell[i].bytes});
	}
	free(cell);
	cells_deinit(&sum);
}

/* "variable 'cache' in app -> make_table (cache.c:20)"; the caller frees it. */
static char *chain_text(const struct leak_holders *h, uint32_t chain)
{
	const struct leak_link *link = &h->links.data[chain];
	const char *name = h->text.data[link->text];
	_cleanup_free_ char *before = link->before ? chain_text(h, link->before) : NULL;

	return before ? xasprintf("%s -> %s", before, name) : xstrdup(name);
}

#define HOLDERS 3 /* of a call path, as in the text of a leak check */

static void add_holders(struct recording *r, const struct leaks *l)
{
	for (uint32_t i = 0; l->holders && i < l->sites.count; i++) {
		const struct leak_site *site = &l->sites.data[i];
		size_t first, n = leak_holders_find(l->holders, site->id, &first);

		for (size_t k = first; k < first + MIN(n, (size_t)HOLDERS); k++) {
			const struct leak_held *held = &l->holders->held.data[k];
			_cleanup_free_ char *chain = chain_text(l->holders, held->chain);
			const char *kind = leak_kinds[site->kind - LEAK_DEFINITE];

			recording_add(r, RECORDING_LEAK_HOLDERS, (uint64_t[LEAK_HOLDER_COLUMNS]){
				site->first_leaf, recording_string(r, kind),
				recording_string(r, chain), held->blocks, held->bytes});
		}
	}
}

struct recording *recording_leaks_new(const struct leakcheck *c, const struct leaks *l)
{
	struct recording *r = recording_new();

	_Static_assert((int)LEAKCHECK_REACHABLE == LEAK_REACHABLE - LEAK_DEFINITE, "one order");
	add_blocks(r, c);
	add_ages(r, c, l->now / 1000);
	add_holders(r, l);
	return r;
}

static bool find_object(void *ctx, uint32_t id, struct recording_object *out)
{
	const struct session *s = ctx;
	const struct module *m = run_module(s->run, id);

	if (!m)
		return false;
	*out = (struct recording_object){.path = m->path, .start = m->start, .end = m->end};
	if (!m->file)
		return true;
	out->build_id = m->file->build_id;
	out->build_id_size = m->file->build_id_size;
	const struct elf_segment *segment = elf_file_segment(m->file, m->start - m->bias);

	if (segment)
		out->offset = segment->offset + (m->start - m->bias - segment->vaddr);
	return true;
}

static const char *find_function(void *ctx, uint32_t frame)
{
	struct session *s = ctx;
	const struct calltree_frame *f = calltree_frame(profile_calltree(s->heap.profile), frame);

	return run_function(s->run, f);
}

struct recording_input session_recording_input(struct session *s, const struct recording_span *span,
					       const struct report *report, bool is_quick)
{
	const struct profile *p = report->profile;

	return (struct recording_input){
		.report = report,
		.history = span->part ? profile_history(p) : profile_whole_history(p),
		.names = {find_object, is_quick ? find_function : NULL, s, s->image.program},
		.releases = s->heap.releases,
	};
}

void recording_complete_values(struct session *s, const char *why)
{
	const struct recording_base none = {0};
	struct recording_cost cost;

	if (why)
		recording_values_add(s, "exit", why);
	recording_cost_since(s, &none, &cost);
	for (size_t i = 0; i < cost.count; i++)
		recording_values_add(s, cost.value[i].key, cost.value[i].text);
}

static void fill_end(struct session *s, const struct recording_input *in,
		     const struct recording_span *span, struct recording *r)
{
	uint64_t row[END_COLUMNS];
	const char *stacks = recording_meta(r, "stacks"),
		   *complete = recording_meta(r, "complete_stacks");
	char duration[32];

	recording_fill_end(in->report->profile, in->history, row);
	row[END_STACKS] = stacks ? strtoull(stacks, NULL, 10) : s->stacks.counts.taken;
	row[END_COMPLETE_STACKS] =
		complete ? strtoull(complete, NULL, 10) : s->stacks.counts.complete;
	recording_add(r, RECORDING_END, row);
	uint64_t start_ns = s->process.start_ns + span->start_ns;

	snprintf(duration, sizeof(duration), "%.3f", (double)(s->process.end_ns - start_ns) / 1e6);
	recording_set_meta(r, "duration", duration);
}

static struct recording *build(struct session *s, const struct recording_span *span,
			       const struct recording_input *in)
{
	struct recording_builder b;
	struct recording *r = recording_new();

	r->interval = s->heap.sample.interval;
	profile_sync_history(s->heap.profile);
	recording_values_copy(s, span, r, 0);
	recording_builder_init(&b, r, in);
	recording_build_all(&b);
	recording_builder_deinit(&b);
	return r;
}

struct recording *recording_complete_new(struct session *s, const struct recording_span *span)
{
	const struct report report = session_report(s);
	const struct recording_input in = session_recording_input(s, span, &report, false);
	struct recording *r = build(s, span, &in);

	if (recording_span_is_later(span)) {
		struct recording_cost cost;

		recording_cost_since(s, &span->base, &cost);
		for (size_t i = 0; i < cost.count; i++)
			recording_set_meta(r, cost.value[i].key, cost.value[i].text);
	}
	fill_end(s, &in, span, r);
	if (s->recording->leaks) {
		recording_set_meta(r, "leak_check", "1");
		recording_copy(s->recording->leaks, RECORDING_LEAKS, r);
		recording_copy(s->recording->leaks, RECORDING_LEAK_AGES, r);
		recording_copy(s->recording->leaks, RECORDING_LEAK_HOLDERS, r);
	}
	last_inspection_add(&s->end.inspection, r);
	return r;
}

static int put_file(FILE *file, const void *ctx)
{
	return recording_write(file, ctx);
}

/* @r as --record-limit allows it; NULL: as it is. */
static struct recording *thin(const struct session *s, const struct recording *r)
{
	uint64_t limit = s->run->options->files.record_limit;

	return limit ? recording_limit(r, limit) : NULL;
}

char *recording_part_end(unsigned part)
{
	return part ? xasprintf(".%03u", part) : NULL;
}

int recording_complete_write(const struct session *s, const struct recording *r, const char *path)
{
	unsigned part = s->recording->span.part;
	_cleanup_free_ char *end = recording_part_end(part);
	struct recording *thinned = thin(s, r);
	const struct out_content content = {
		put_file, thinned ? thinned : r, end, part ? s->run->fallback_directory : NULL};
	int rc = out_put(OUT_RECORD, s->process.pid, path, &content);

	recording_free(thinned);
	return rc;
}

int recording_unfinished_write(struct session *s, const char *path)
{
	const struct recording_span *span = &s->recording->span;
	const struct report report = session_report(s);
	const struct recording_input in = session_recording_input(s, span, &report, true);
	struct recording *r = build(s, span, &in), *thinned = thin(s, r);
	int rc = outfile_put(path, put_file, thinned ? thinned : r);

	recording_free(thinned);
	recording_free(r);
	return rc;
}
