/*
 * The contents of a chart: series, points, marks, and the palette.
 */
#include "report/chart.h"

#include <stdlib.h>

#include "base/alloc.h"

struct canvas_color chart_palette(size_t i)
{
	static const struct canvas_color palette[CHART_PALETTE_SIZE] = {
		{0.34, 0.71, 0.91}, /* sky blue */
		{0.90, 0.62, 0.00}, /* orange */
		{0.00, 0.62, 0.45}, /* bluish green */
		{0.95, 0.89, 0.26}, /* yellow */
		{0.00, 0.45, 0.70}, /* blue */
		{0.84, 0.37, 0.00}, /* vermillion */
		{0.80, 0.47, 0.65}, /* reddish purple */
	};

	return palette[i % CHART_PALETTE_SIZE];
}

struct chart_series *chart_add(struct chart *c, char *label, enum chart_style style,
			       struct canvas_color color)
{
	c->series = xgrow(c->series, &c->series_capacity, c->series_count + 1, sizeof(*c->series));
	struct chart_series *s = &c->series[c->series_count++];

	*s = (struct chart_series){.label = label, .style = style, .color = color};
	return s;
}

void chart_add_point(struct chart_series *s, double x, double low, double high)
{
	s->point = xgrow(s->point, &s->capacity, s->count + 1, sizeof(*s->point));
	s->point[s->count++] = (struct chart_point){.x = x, .low = low, .high = high};
}

void chart_add_band(struct chart *c, double x)
{
	c->band = xgrow(c->band, &c->band_capacity, c->band_count + 1, sizeof(*c->band));
	c->band[c->band_count++] = x;
}

void chart_add_mark(struct chart *c, double x)
{
	c->mark = xgrow(c->mark, &c->mark_capacity, c->mark_count + 1, sizeof(*c->mark));
	c->mark[c->mark_count++] = x;
}

void chart_deinit(struct chart *c)
{
	for (size_t i = 0; i < c->series_count; i++) {
		free(c->series[i].label);
		free(c->series[i].detail);
		free(c->series[i].value);
		free(c->series[i].point);
	}
	free(c->series);
	free(c->title);
	free(c->x_title);
	free(c->y_title);
	free(c->right_title);
	free(c->note);
	free(c->peak_label);
	free(c->band);
	free(c->mark);
	*c = (struct chart){0};
}
