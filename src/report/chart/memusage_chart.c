/*
 * memusage's data as a chart: heap and stack, over calls or over time. Heap and stack have separate
 * scales, since a stack is small, unless the total is requested, which needs a common one. The
 * background shows the other x axis: bands of 5 % of the time over calls, of the calls over time. A
 * program without calls has a picture, too, as in memusagestat: scripts expect the file.
 */
#include "report/chart/input_picture.h"

#include "base/alloc.h"

#define BANDS 20

static double time_percent(const struct memusage_file *f, uint64_t time)
{
	return f->end > f->start ? (double)(time - f->start) * 100 / (double)(f->end - f->start) :
				   0;
}

#define WALL_MIN UINT64_C(1000000000000000000) /* ns, of 2001 */

/* Whether times are in ns, as ptmem writes them; in memusage's files their unit is not known. */
static bool has_seconds(const struct memusage_file *f)
{
	return f->start > WALL_MIN && f->start < 5 * WALL_MIN;
}

/* The same in milliseconds if the unit is known. */
static double time_of(const struct memusage_file *f, uint64_t time)
{
	return has_seconds(f) ? (double)(time - f->start) / 1e6 : time_percent(f, time);
}

/* The x of record @i's values, which hold until the next one. */
static double x_of(const struct memusage_file *f, const struct picture_options *o, size_t i)
{
	return o->is_time_based ? time_of(f, f->record[i].time) : (double)i;
}

static char *value_text(double bytes)
{
	char text[AXIS_TEXT_SIZE];

	axis_text(AXIS_BYTES, bytes, text);
	return xasprintf("peak %s", text);
}

/* Where each 5 % of the other axis begin. False: nowhere within the picture, so it has no bands. */
static bool add_bands(const struct memusage_file *f, const struct picture_options *o,
		      struct chart *c)
{
	bool is_visible = false;

	chart_add_band(c, 0);
	if (o->is_time_based) {
		for (size_t i = 1; f->count >= BANDS && i < BANDS; i++)
			chart_add_band(c, time_of(f, f->record[i * f->count / BANDS].time));
	} else {
		size_t k = 1;

		for (size_t i = 0; i < f->count && f->end > f->start; i++)
			for (; k < BANDS &&
			       time_percent(f, f->record[i].time) >= (double)k * 100 / BANDS;
			     k++)
				chart_add_band(c, (double)i);
	}
	chart_add_band(c, c->x.max);
	for (size_t i = 0; i < c->band_count; i++)
		is_visible |= c->band[i] > 0 && c->band[i] < c->x.max;
	c->band_count = is_visible ? c->band_count : 0;
	return is_visible;
}

static char *note_text(const struct memusage_file *f, const char *bands_of)
{
	if (!f->count)
		return xstrdup("No call was made.");
	const char *end =
		f->is_complete ?
			"" :
			"The program did not end by itself: peaks are those of the records.";

	if (!bands_of)
		return *end ? xstrdup(end) : NULL;
	return xasprintf("Bands: each is 5 %% of the %s.%s%s", bands_of, *end ? " " : "", end);
}

/* What a curve is the sum of. */
enum { HEAP = 1, STACK = 2 };

static struct chart_series *add_curve(const struct memusage_file *f,
				      const struct picture_options *o, struct chart *c,
				      const char *label, unsigned parts)
{
	struct chart_series *s = chart_add(c, xstrdup(label), CHART_STEPS, CHART_BLACK);
	double value = 0;

	for (size_t i = 0; i < f->count; i++) {
		const struct memusage_record *r = &f->record[i];

		value = (double)((parts & HEAP ? r->heap : 0) + (parts & STACK ? r->stack : 0));
		chart_add_point(s, x_of(f, o, i), 0, value);
	}
	if (f->count)
		chart_add_point(s, c->x.max, 0, value);
	return s;
}

static void mark_peak(const struct memusage_file *f, const struct picture_options *o,
		      struct chart *c)
{
	size_t peak = 0;
	char text[AXIS_TEXT_SIZE];

	for (size_t i = 1; i < f->count; i++)
		if (f->record[i].heap > f->record[peak].heap)
			peak = i;
	if (!f->count)
		return;
	axis_text(AXIS_BYTES, (double)f->record[peak].heap, text);
	c->has_peak = true;
	c->peak_x = x_of(f, o, peak);
	c->peak_y = (double)f->record[peak].heap;
	c->peak_label = xasprintf("heap peak %s", text);
}

static void add_curves(const struct memusage_file *f, const struct picture_options *o,
		       struct chart *c)
{
	struct chart_series *s = add_curve(f, o, c, "heap", HEAP);

	s->color = CHART_VERMILLION;
	s->value = value_text((double)f->peak_heap);
	s = add_curve(f, o, c, "stack", STACK);
	s->color = CHART_GREEN;
	s->value = value_text((double)f->peak_stack);
	s->is_right = !o->wants_total;
	if (o->wants_total) {
		s = add_curve(f, o, c, "heap + stack", HEAP | STACK);
		s->style = CHART_STEP_DASHES;
		s->value = value_text((double)f->peak_total);
	}
}

void memusage_chart(const struct memusage_file *f, const struct picture_options *o,
		    struct chart *c)
{
	uint64_t heap = f->peak_heap, stack = f->peak_stack, largest_total = 0;

	for (size_t i = 0; i < f->count; i++) {
		largest_total = MAX(largest_total, f->record[i].heap + f->record[i].stack);
		heap = MAX(heap, f->record[i].heap);
		stack = MAX(stack, f->record[i].stack);
	}
	c->title = xstrdup(o->title ? o->title : "memory use");
	c->y.kind = c->right.kind = AXIS_BYTES;
	c->y.max = MAX((double)(o->wants_total ? MAX(f->peak_total, largest_total) : heap), 1);
	c->right.max = MAX((double)stack, 1);
	c->has_right = !o->wants_total;
	c->y_title = xstrdup(o->wants_total ? "memory" : "heap");
	c->right_title = o->wants_total ? NULL : xstrdup("stack");
	c->x.kind = AXIS_CALLS;
	c->x.max = MAX((double)f->count, 1);
	if (o->is_time_based) {
		c->x.kind = has_seconds(f) ? AXIS_MILLISECONDS : AXIS_PERCENT;
		c->x.max = has_seconds(f) ? time_of(f, f->end) : 100;
	}
	c->x_title = xstrdup(!o->is_time_based ? "calls" :
			     has_seconds(f)    ? "time" :
						 "time (share of the run)");
	bool has_bands = add_bands(f, o, c);
	c->note = note_text(f, !has_bands ? NULL : o->is_time_based ? "calls" : "time");
	add_curves(f, o, c);
	mark_peak(f, o, c);
}
