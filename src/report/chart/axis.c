/* Scales and their units in one table: each unit has the smallest value for which it is used. */
#include "report/chart/axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct unit {
	const char *name;    /* with a leading space */
	double size;         /* in the axis's own unit */
	double from;         /* smallest value shown in this unit */
};

#define KIB 1024.0
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
#define PIB (1024 * TIB)
#define EIB (1024 * PIB)
#define SECOND 1000.0
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static const struct unit byte_units[] = {
	{" B", 1, 0},
	{" KiB", KIB, KIB},
	{" MiB", MIB, MIB},
	{" GiB", GIB, GIB},
	{" TiB", TIB, TIB},
	{" PiB", PIB, PIB},
	{" EiB", EIB, EIB},
};
static const struct unit time_units[] = {
	{" ms", 1, 0}, {" s", SECOND, SECOND}, {" min", MINUTE, 2 * MINUTE},
	{" h", HOUR, 2 * HOUR}, {" d", DAY, 2 * DAY},
};
static const struct unit count_units[] = {
	{"", 1, 0},	    {" k", 1e3, 1e4},	{" M", 1e6, 1e6},   {" G", 1e9, 1e9},
	{" T", 1e12, 1e12}, {" P", 1e15, 1e15}, {" E", 1e18, 1e18},
};
static const struct unit percent_units[] = {{" %", 1, 0}};

static const struct {
	const struct unit *unit;
	size_t count;
} units[] = {
	[AXIS_BYTES] = {byte_units, ARRAY_SIZE(byte_units)},
	[AXIS_MILLISECONDS] = {time_units, ARRAY_SIZE(time_units)},
	[AXIS_INSTRUCTIONS] = {count_units, ARRAY_SIZE(count_units)},
	[AXIS_CALLS] = {count_units, ARRAY_SIZE(count_units)},
	[AXIS_PERCENT] = {percent_units, ARRAY_SIZE(percent_units)},
};

static const struct unit *unit_for(enum axis_kind kind, double value)
{
	const struct unit *unit = units[kind].unit;

	for (size_t i = 1; i < units[kind].count; i++)
		if (value >= units[kind].unit[i].from)
			unit = &units[kind].unit[i];
	return unit;
}

/* The smallest of 1, 2, 5, 10, ... that is at least @least. */
static double decimal_step(double least)
{
	double power = pow(10, floor(log10(least)));
	static const double digit[] = {1, 2, 5};

	for (size_t i = 0; i < ARRAY_SIZE(digit); i++)
		if (digit[i] * power >= least * (1 - 1e-12))
			return digit[i] * power;
	return 10 * power;
}

/* Steps usual for times, in minutes; in hours in the second half. */
static double clock_step(double least)
{
	static const double minutes[] = {0.5, 1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440};

	for (size_t i = 0; i < ARRAY_SIZE(minutes); i++)
		if (minutes[i] * MINUTE >= least)
			return minutes[i] * MINUTE;
	return decimal_step(least / DAY) * DAY;
}

double axis_step(const struct axis *axis, unsigned count)
{
	double least = axis->max / MAX(count, 1u);
	bool is_whole = axis->kind != AXIS_MILLISECONDS && axis->kind != AXIS_PERCENT;

	if (is_whole && least < 1)
		return 1;
	if (axis->kind == AXIS_BYTES)
		return exp2(ceil(log2(least))); /* a power of two */
	if (axis->kind == AXIS_MILLISECONDS && axis->max >= time_units[2].from)
		return clock_step(least);
	return decimal_step(least);
}

void axis_label(const struct axis *axis, double step, double value, char buf[AXIS_TEXT_SIZE])
{
	const struct unit *unit = unit_for(axis->kind, axis->max);

	/* Eighths of a MiB are harder to read than KiB. */
	if (axis->kind == AXIS_BYTES && step * 4 < unit->size)
		unit--;
	if (value == 0 && axis->kind != AXIS_PERCENT)
		strcpy(buf, "0");
	else
		snprintf(buf, AXIS_TEXT_SIZE, "%.6g%s", value / unit->size, unit->name);
}

void axis_text(enum axis_kind kind, double value, char buf[AXIS_TEXT_SIZE])
{
	const struct unit *unit = unit_for(kind, value);
	double scaled = value / unit->size;
	bool is_exact = unit->size == 1 && floor(value) == value;
	int decimals = is_exact || scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;

	snprintf(buf, AXIS_TEXT_SIZE, "%.*f%s", decimals, scaled, unit->name);
}
