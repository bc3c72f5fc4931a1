/* See life.h. */
#include "report/life.h"

#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "profile/cells.h"
#include "profile/estimate.h"
#include "recording/recording_view.h"

/* By the middles of their buckets; no block lives longer than the program was watched. */
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

/* Replaces these sums by those of the lifetimes themselves, where the recording has them. */
static void set_lived(const struct recording *r, struct life *of_leaf)
{
	_cleanup_free_ double *lived = recording_lived(r);
	double unit = r->interval ? (double)ESTIMATE_UNIT : 1;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (isnan(lived[i]))
			of_leaf[i].is_guess = of_leaf[i].released > 0;
		else
			of_leaf[i].lived = 1e-6 * unit * lived[i];
}

static void add_live(const struct recording *r, struct life *of_leaf, double end)
{
	const struct recording_table *t = &r->table[RECORDING_CELLS];
	double width = (double)(UINT64_C(1) << r->shift) / 1000;

	for (size_t i = 0; i < t->rows; i++) {
		struct life *life = &of_leaf[t->column[CELL_LEAF][i] - 1];
		uint64_t born = t->column[CELL_BORN][i], blocks = t->column[CELL_BLOCKS][i];
		/* it is at least as old as the end of the interval in which it was allocated */
		double until = born == CELL_BEFORE ? 0 : width * (double)(born + 1);

		if (t->column[CELL_DIED][i] != CELL_NEVER)
			continue;
		life->live += blocks;
		life->aged += (double)blocks * fmax(0, end - until);
	}
}

struct life *lives_of_leaves(const struct recording *r)
{
	struct life *life = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1, sizeof(*life));
	double end = recording_duration(r) / 1000;

	add_released(r, life, end);
	set_lived(r, life);
	add_live(r, life, end);
	return life;
}

void life_add(struct life *to, const struct life *from)
{
	to->released += from->released;
	to->live += from->live;
	to->lived += from->lived;
	to->aged += from->aged;
	to->is_guess |= from->is_guess;
}

#define TIME_SIZE 32

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

char *life_text(const struct life *life)
{
	char mean[TIME_SIZE], lived[TIME_SIZE + 8], aged[TIME_SIZE], age[TIME_SIZE + 8] = "";
	double released = (double)life->released, live = (double)life->live;

	/* events have times of about a microsecond */
	if (life->released && life->lived / released < 1e-6)
		snprintf(lived, sizeof(lived), "< 1 us");
	else if (life->released)
		snprintf(lived, sizeof(lived), "%s%s", life->is_guess ? "about " : "",
			 time_text(life->lived / released, mean));
	if (life->aged > 0)
		snprintf(age, sizeof(age), ", >= %s", time_text(life->aged / live, aged));
	if (!life->live)
		return xstrdup(lived);
	if (!life->released)
		return xasprintf("live%s", age);
	return xasprintf("%s, %.1f %% live%s", lived, 100 * live / (released + live), age);
}
