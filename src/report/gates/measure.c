/* See measure.h. */
#include "report/gates/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "recording/recording_json.h"
#include "report/massif_paths.h"

bool measure_knows(const struct input *input, enum limit_metric metric)
{
	const struct recording *r = input->recording;

	switch (metric) {
	case LIMIT_PEAK:
	case LIMIT_LIVE:
		return true;
	case LIMIT_TEMPORARY:
		return r && recording_knows_temporary(r);
	case LIMIT_LEAKED:
		return r && recording_meta(r, "leak_check");
	case LIMIT_RSS:
		return r && recording_meta(r, "peak_resident");
	case LIMIT_ALLOCATIONS:
	case LIMIT_ALLOCATED:
		return r;
	case LIMIT_METRICS:
		break;
	}
	return false;
}

/* -- calls -- */

/* A value of WITHIN_META, which is untrusted. */
struct measured_calls {
	enum limit_metric metric;
	double value;
	unsigned long long number;
	const char *part; /* "within handle"; in the text */
};

/* Value @row of META: whether it is one. */
static bool read_calls(const struct recording *r, size_t row, struct measured_calls *out)
{
	const char *key = r->text.data[recording_get(r, RECORDING_META, row, META_KEY)];
	const char *text = r->text.data[recording_get(r, RECORDING_META, row, META_VALUE)];
	size_t name = strcspn(text, " ");
	unsigned long long calls;
	int size = 0;

	if (strcmp(key, WITHIN_META) != 0)
		return false;
	*out = (struct measured_calls){.metric = limit_find_metric(text, name)};
	if (sscanf(text + name, " %lf %llu %llu %n", &out->value, &out->number, &calls, &size) != 3)
		return false;
	out->part = text + name + size;
	return out->metric != LIMIT_METRICS && size && isfinite(out->value) && out->value >= 0;
}

/* The part of the run of @l, as its text has it: "within handle". */
static const char *part_of(const struct limit *l)
{
	return l->within - strlen(l->until ? "between " : "within ");
}

bool measure_calls(const struct recording *r, const struct limit *l, double *value_out,
		   char **which_out)
{
	struct measured_calls c;

	for (size_t i = recording_rows(r, RECORDING_META); i-- > 0;) {
		if (!read_calls(r, i, &c) || c.metric != l->metric ||
		    strcmp(c.part, part_of(l)) != 0)
			continue;
		*value_out = c.value;
		*which_out = l->until ? xasprintf("part %llu %s", c.number, c.part) :
					xasprintf("call %llu of %s", c.number, l->within);
		return true;
	}
	return false;
}

char *measure_known_calls(const struct recording *r)
{
	_cleanup_free_ char *text = NULL, *last = NULL;
	struct measured_calls c;

	for (size_t i = 0; i < recording_rows(r, RECORDING_META); i++) {
		if (!read_calls(r, i, &c) || (last && strcmp(last, c.part) == 0))
			continue;
		char *longer = text ? xasprintf("%s, %s", text, c.part) : xstrdup(c.part);

		free(text);
		text = longer;
		free(last);
		last = xstrdup(c.part);
	}
	return_ptr(text);
}

/* -- whole profiles -- */

static void select_view(struct recording_view *v, const struct recording *r,
			enum limit_metric metric)
{
	size_t intervals = recording_rows(r, RECORDING_TIMELINE);

	recording_view_deinit(v);
	switch (metric) {
	case LIMIT_ALLOCATIONS:
	case LIMIT_ALLOCATED:
		recording_view_of(v, r, VIEW_TOTAL);
		return;
	case LIMIT_LIVE:
		if (intervals)
			recording_view_at(v, r, (uint32_t)intervals - 1);
		else
			recording_view_of(v, r, VIEW_AT);
		return;
	case LIMIT_TEMPORARY:
		recording_view_of(v, r, VIEW_TEMPORARY);
		return;
	case LIMIT_LEAKED:
		recording_view_leaks(v, r, "lost", 0);
		return;
	case LIMIT_PEAK:
	case LIMIT_RSS: /* of which the heap tells its part */
	case LIMIT_METRICS:
		recording_view_of(v, r, VIEW_PEAK);
	}
}

static double all_allocations(const struct recording *r)
{
	struct recording_view all;

	recording_view_of(&all, r, VIEW_TOTAL);
	double count = (double)recording_count(r, all.sum.blocks);

	recording_view_deinit(&all);
	return count;
}

static double value_of_recording(const struct recording *r, const struct recording_view *v,
				 enum limit_metric metric)
{
	double blocks = (double)recording_count(r, v->sum.blocks), all;

	switch (metric) {
	case LIMIT_ALLOCATIONS:
		return blocks;
	case LIMIT_TEMPORARY:
		all = all_allocations(r);
		return all > 0 ? 100 * blocks / all : 0;
	case LIMIT_RSS:
		return strtod(recording_meta(r, "peak_resident") ?: "0", NULL);
	case LIMIT_PEAK:
	case LIMIT_LIVE:
	case LIMIT_ALLOCATED:
	case LIMIT_LEAKED:
		return (double)v->sum.bytes;
	case LIMIT_METRICS:
		break;
	}
	return 0;
}

static double value_of_massif(const struct massif_file *f, enum limit_metric metric,
			      size_t *snapshot)
{
	size_t last = f->snapshot_count - 1;

	*snapshot = metric == LIMIT_LIVE || f->peak == SIZE_MAX ? last : f->peak;
	return f->snapshot_count ? (double)f->snapshot[*snapshot].heap : 0;
}

void measure_select(struct diff_pair *pair, enum limit_metric metric, double value[2])
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct input *in = &pair->input[side];

		value[side] = 0;
		if (in->recording) {
			select_view(&pair->view[side], in->recording, metric);
			value[side] = value_of_recording(in->recording, &pair->view[side], metric);
		} else if (in->massif) {
			size_t *snapshot = &pair->snapshot[side];

			value[side] = value_of_massif(in->massif, metric, snapshot);
			recording_view_deinit(&pair->view[side]);
			massif_paths_view(in->massif, *snapshot, &pair->view[side]);
		}
	}
}

/* A massif file has call trees of some snapshots. */
bool measure_has_paths(const struct diff_pair *pair, enum limit_metric metric)
{
	for (int side = PATH_OLD; side <= PATH_NEW; side++) {
		const struct massif_file *f = pair->input[side].massif;

		if (f && (metric == LIMIT_RSS || pair->snapshot[side] >= f->snapshot_count ||
			  !f->snapshot[pair->snapshot[side]].root))
			return false;
	}
	return true;
}

/* -- call sites -- */

static bool counts_blocks(enum limit_metric metric)
{
	return limit_info[metric].unit != LIMIT_BYTES;
}

static bool has_function(const struct measured *m, enum path_side side,
			 const struct diff_stack *stack)
{
	for (size_t i = 0; m->of && i < stack->count; i++)
		if (limit_is_of(m->of, frame_match_name(m->pair->match,
							frame_match_function(m->pair->match, side,
									     stack->frame[i]))))
			return true;
	return !m->of;
}

static void add_place(struct measured_site *s, const struct input *in, enum path_side side,
		      uint32_t frame, double amount)
{
	uint64_t line = recording_get(input_paths(in), RECORDING_FRAMES, frame, FRAME_LINE);

	for (size_t i = 0; i < s->place.count; i++) {
		struct measured_place *p = &s->place.data[i];

		if (p->side == side && p->line == line) {
			p->value += amount;
			return;
		}
	}
	*vec_add(&s->place) = (struct measured_place){side, frame, line, amount};
}

static bool is_smaller(const struct measured_place *best, const struct measured_place *p)
{
	return !best || best->side < p->side || (best->side == p->side && best->value < p->value);
}

/* Lines move, so equal values are taken for one line. Consumes the values of places. */
static void choose_place(struct measured_site *s)
{
	const struct measured_place *best = NULL, *largest = NULL;

	for (size_t i = 0; i < s->place.count; i++) {
		struct measured_place *p = &s->place.data[i], *same = NULL;

		for (size_t k = 0; p->side == PATH_NEW && k < s->place.count && !same; k++)
			if (s->place.data[k].side == PATH_OLD && s->place.data[k].value == p->value)
				same = &s->place.data[k];
		if (is_smaller(largest, p))
			largest = p;
		if (same)
			same->value = -1;
		else if (is_smaller(best, p))
			best = p;
	}
	if (best && best->side == PATH_OLD && largest->side == PATH_NEW)
		best = largest;
	best = best ?: largest;
	s->side = best ? best->side : PATH_OLD;
	s->frame = best ? best->frame : 0;
}

static void take_stack(void *ctx, enum path_side side, const struct diff_stack *stack)
{
	struct measured *m = ctx;
	uint64_t amount = counts_blocks(m->metric) ? stack->blocks : stack->bytes;
	bool is_unknown = stack->site >= stack->count;

	if (!has_function(m, side, stack))
		return;
	uint32_t frame = is_unknown ? 0 : stack->frame[stack->site];
	size_t number = is_unknown ? frame_match_site_count(m->pair->match) :
				     frame_match_site(m->pair->match, side, frame);

	while (m->site.count <= number)
		*vec_add(&m->site) = (struct measured_site){.is_unknown = true};
	struct measured_site *s = &m->site.data[number];

	s->is_unknown = is_unknown;
	if (!is_unknown)
		add_place(s, &m->pair->input[side], side, frame, (double)amount);
	s->value[side] += (double)amount;
	m->sum[side] += (double)amount;
	m->has_function = true;
}

void measured_init(struct measured *m, const struct diff_pair *pair, enum limit_metric metric,
		   const struct limit *of)
{
	*m = (struct measured){.pair = pair, .metric = metric, .of = of};
	diff_pair_each(pair, take_stack, m);
	for (size_t i = 0; i < m->site.count; i++)
		choose_place(&m->site.data[i]);
}

struct maximum_reader {
	struct measured *m;
	double *sum; /* by enum path_side */
};

static void take_maximum(void *ctx, enum path_side side, const struct diff_stack *stack)
{
	struct maximum_reader *reader = ctx;
	struct measured_site *largest = reader->m->site.data;
	double bytes = (double)stack->max_bytes;

	if (!has_function(reader->m, side, stack))
		return;
	reader->m->has_function = true;
	reader->sum[side] += bytes;
	if (bytes <= largest->value[side])
		return;
	largest->value[side] = bytes;
	largest->side = side; /* the new one comes last */
	largest->is_unknown = stack->site >= stack->count;
	largest->frame = largest->is_unknown ? 0 : stack->frame[stack->site];
}

void measured_init_maximum(struct measured *m, const struct diff_pair *given,
			   const struct limit *of, double most_out[2])
{
	struct diff_pair pair = {.input = given->input, .match = given->match};
	double value[2];

	*m = (struct measured){.pair = given, .metric = LIMIT_PEAK, .of = of};
	*vec_add(&m->site) = (struct measured_site){.is_unknown = true};
	most_out[PATH_OLD] = most_out[PATH_NEW] = 0;
	measure_select(&pair, LIMIT_ALLOCATED, value);
	diff_pair_each(&pair, take_maximum, &(struct maximum_reader){m, most_out});
	for (int side = PATH_OLD; side <= PATH_NEW; side++)
		recording_view_deinit(&pair.view[side]);
}

void measured_deinit(struct measured *m)
{
	for (size_t i = 0; i < m->site.count; i++)
		vec_deinit(&m->site.data[i].place);
	vec_deinit(&m->site);
}

static double change_of(const struct measured_site *s)
{
	return s->value[PATH_NEW] - s->value[PATH_OLD];
}

const char *measured_function(const struct measured *m, size_t i)
{
	const struct measured_site *s = &m->site.data[i];
	const struct frame_match *match = m->pair->match;

	if (s->is_unknown)
		return "[unknown]";
	return frame_match_name(match, frame_match_function(match, s->side, s->frame));
}

/* Of changes, growth and shrinkage alike. */
struct order {
	const struct measured *m;
	bool is_by_change;
};

static double weight(const struct order *o, size_t i)
{
	const struct measured_site *s = &o->m->site.data[i];

	return o->is_by_change ? fabs(change_of(s)) : change_of(s);
}

/* Equal ones by name, so that reports do not depend on numbers. */
static int compare_sites(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	double of_x = weight(o, x), of_y = weight(o, y);

	if (of_x != of_y)
		return (of_x < of_y) - (of_x > of_y);
	return strcmp(measured_function(o->m, x), measured_function(o->m, y));
}

void measured_sort(struct measured *m, bool is_by_change)
{
	struct order order = {m, is_by_change};
	size_t count = m->site.count;
	_cleanup_free_ size_t *index = xcalloc(count + 1, sizeof(*index));
	_cleanup_free_ struct measured_site *sorted = xcalloc(count + 1, sizeof(*sorted));

	for (size_t i = 0; i < count; i++)
		index[i] = i;
	if (count)
		qsort_r(index, count, sizeof(*index), compare_sites, &order);
	for (size_t i = 0; i < count; i++)
		sorted[i] = m->site.data[index[i]];
	if (count)
		memcpy(m->site.data, sorted, count * sizeof(*sorted));
}

/* The source of a frame: NULL = unknown. */
static const char *source_of(const struct recording *r, uint32_t frame)
{
	uint64_t file = recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE);

	return file ? r->text.data[file] : NULL;
}

void measured_add_site(const struct measured *m, size_t i, gate_sites *out)
{
	const struct measured_site *s = &m->site.data[i];
	const struct frame_match *match = m->pair->match;
	const struct recording *r = input_paths(&m->pair->input[s->side]);
	_cleanup_free_ char *label = NULL;
	const char *file = NULL;
	uint64_t line = 0;

	if (s->is_unknown) {
		label = xstrdup("[unknown]");
	} else {
		const char *name = frame_match_site_name(
			match, frame_match_site(match, s->side, s->frame));
		const char *place = frame_match_place(match, s->side, s->frame);

		label = place ? xasprintf("%s (%s)", name, place) : xstrdup(name);
		file = source_of(r, s->frame);
		line = recording_get(r, RECORDING_FRAMES, s->frame, FRAME_LINE);
	}
	struct gate_site *site = gate_add_site(out, label, file, line);

	memcpy(site->value, s->value, sizeof(site->value));
}
