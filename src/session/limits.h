/*
 * --limit=METRIC[@FUNCTION]<AMOUNT: what a profile must stay below, as a gate for tests.
 *
 *	peak<100M                  bytes live at the peak
 *	live-at-end<1M             bytes live at the end
 *	allocated<1G               bytes ever allocated
 *	allocations<10K            number of allocations
 *	temporary<50%              share of allocations released by the next event of their thread
 *	leaked<1                   bytes definitely lost, of all processes (--leak-check)
 *	peak@parse_config<10M      what call paths with this function hold at the peak's snapshot;
 *	                           likewise live-at-end, allocated and allocations
 *
 * "<=" allows the amount itself. K, M, G and T multiply bytes by powers of 1,024, and numbers of
 * allocations by powers of 1,000.
 */
#ifndef PTMEM_SESSION_LIMITS_H
#define PTMEM_SESSION_LIMITS_H

#include "base/types.h"

struct run;
struct session;

enum limit_metric {
	LIMIT_PEAK, LIMIT_LIVE, LIMIT_ALLOCATED, LIMIT_ALLOCATIONS, LIMIT_TEMPORARY, LIMIT_LEAKED,
	LIMIT_METRICS,
};

struct limit {
	const char *text;       /* the whole of it */
	enum limit_metric metric;
	const char *function;   /* in the text, not terminated; NULL = the whole program */
	size_t function_size;
	double amount;          /* bytes, a number, or percent */
	bool may_equal;
};

/* NULL and *@out, or what is wrong with @text, which *@out points into. */
const char *limit_parse(const char *text, struct limit *out);

/*
 * Fills in r->limits and r->counts_temporary from --limit and --limits-file, in which a line has a
 * limit, or nothing, or a comment that begins with '#'. 0, or -errno after a message. limits_close
 * frees them.
 */
int limits_open(struct run *r);
void limits_close(struct run *r);

/*
 * Checks all limits but those of leaks for the profile of @s, which has ended: says which do not
 * hold, with the call sites that have most, and counts these in run->limits_exceeded.
 */
void limits_check(struct session *s);
/* The same for leaks, after the last process of @r has ended. */
void limits_check_leaks(struct run *r);

#endif
