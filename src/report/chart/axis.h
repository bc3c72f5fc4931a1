/*
 * Numbers on axes: the values with ticks, and the format of values.
 *
 *	AXIS_BYTES         0  512 KiB  1 MiB         powers of two in B, KiB, MiB, GiB, ...
 *	AXIS_MILLISECONDS  0  500 ms; 20 s; 5 min; 2 h; 1 d
 *	AXIS_INSTRUCTIONS  0  200 k  1.5 M  2 G
 *	AXIS_CALLS         the same
 *	AXIS_PERCENT       0 %  20 %
 */
#ifndef PTMEM_REPORT_CHART_AXIS_H
#define PTMEM_REPORT_CHART_AXIS_H

#include "base/types.h"

enum axis_kind { AXIS_BYTES, AXIS_MILLISECONDS, AXIS_INSTRUCTIONS, AXIS_CALLS, AXIS_PERCENT };

#define AXIS_TEXT_SIZE 32

struct axis {
	enum axis_kind kind;
	double max;          /* the axis extends from 0 to this, > 0 */
};

/* The distance of ticks, such that at most @count (>= 1) of them follow the one at 0. */
double axis_step(const struct axis *axis, unsigned count);

/*
 * The label of the tick at @value, for ticks @step apart: all labels of an axis have the same
 * unit.
 */
void axis_label(const struct axis *axis, double step, double value, char buf[AXIS_TEXT_SIZE]);

/* Formats a value with three significant digits and a suitable unit: "11.3 MiB", "1.53 s". */
void axis_text(enum axis_kind kind, double value, char buf[AXIS_TEXT_SIZE]);

#endif
