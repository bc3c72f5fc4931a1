/*
 * METRIC[@FUNCTION]<AMOUNT[ within FUNCTION]: what a profile must stay below, as a gate for tests.
 *
 *	peak<100M                  bytes live at the peak
 *	live-at-end<1M             bytes live at the end
 *	allocated<1G               bytes ever allocated
 *	allocations<10K            number of allocations
 *	temporary<50%              share of allocations released by the next event of their thread
 *	leaked<1                   bytes definitely lost, and what only these lead to, of all
 *	                           processes (--leak-check)
 *	rss<200M                   most resident memory of the process, as the kernel counts it
 *	peak@parse_config<10M      the most that call paths with this function hold at one time, of
 *	                           which a recording tells a bound (report/gates/measure.h);
 *	                           likewise live-at-end, allocated and allocations
 *
 *	peak<10M within handle     the same of each call of a function, from its entry to its return
 *	                           (session/within.h); all but leaked and rss, and without @
 *	peak<10M between a and b   the same of each part of the run from an entry of a to the next
 *	                           of b, for all threads; not temporary either
 *
 * "<=" allows the amount itself. K, M, G and T multiply bytes by powers of 1,024, and numbers of
 * allocations by powers of 1,000.
 */
#ifndef PTMEM_OUTPUT_LIMIT_H
#define PTMEM_OUTPUT_LIMIT_H

#include "base/types.h"

/* In the order of reports. */
enum limit_metric {
	LIMIT_ALLOCATIONS, LIMIT_PEAK, LIMIT_LIVE, LIMIT_ALLOCATED, LIMIT_TEMPORARY, LIMIT_LEAKED,
	LIMIT_RSS,
	LIMIT_METRICS,
};

enum limit_unit { LIMIT_BYTES, LIMIT_NUMBER, LIMIT_PERCENT };

struct limit_info {
	const char *name;
	enum limit_unit unit;
	bool has_paths;   /* call paths have values of it */
	bool of_calls;    /* it is measured within calls; */
	bool of_sections; /* between functions */
	bool is_compared; /* by --fail-if, and in baselines */
};

extern const struct limit_info limit_info[LIMIT_METRICS];

struct limit {
	const char *text;       /* the whole of it */
	enum limit_metric metric;
	const char *function;   /* in the text, not terminated; NULL = the whole program */
	size_t function_size;
	/*
	 * A function, of each call of which it is; in the text, not terminated; NULL = of the run.
	 * With until, that of each part of the run from an entry of within to one of until.
	 */
	const char *within, *until;
	size_t within_size;
	double amount;          /* bytes, a number, or percent */
	bool may_equal;
};

/* The metric whose name is the first @size bytes at @name; LIMIT_METRICS: none. */
enum limit_metric limit_find_metric(const char *name, size_t size);

/* NULL and *@out, or what is wrong with @text, which *@out points into. */
const char *limit_parse(const char *text, struct limit *out);

bool limit_is_exceeded(const struct limit *l, double value);
/* Whether a frame's name, "ns::parse(int)", is that of @l: with or without parameters. */
bool limit_is_of(const struct limit *l, const char *name);

/* "1,234", "12 bytes", "50.0 %": the caller frees it. */
char *limit_amount(enum limit_metric metric, double value);

#endif
