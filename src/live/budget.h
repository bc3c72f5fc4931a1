/*
 * --budget: measures what ptmem costs, and changes the sampling interval of all sessions. Hides:
 * the windows of time that are measured, the rule, and what stops at breakpoints cost, which no
 * interval changes.
 */
#ifndef PTMEM_LIVE_BUDGET_H
#define PTMEM_LIVE_BUDGET_H

#include "base/types.h"

/*
 * The rule by which --budget changes the sampling interval: it doubles while the cost is above the
 * budget, and is halved when the cost has been below a quarter of it for a while, between the
 * interval of --heap-sample and 1 << shift_max times that.
 *
 *	cost = CPU time of ptmem + BUDGET_RECORD_NS for each record, as a share of one CPU
 */

/*
 * What a record costs the program. It takes 0.12 us if millions of them follow one another and
 * stacks are short, and several times that where samples are rare and stacks are deep.
 */
#define BUDGET_RECORD_NS 500u

struct budget {
	double share;         /* of one CPU: 0.02 for --budget=2% */
	uint32_t shift_max;
	uint32_t shift;       /* the interval in force is 1 << shift times the smallest */
	uint32_t calm;        /* windows in a row that were below a quarter */
	uint32_t calm_needed; /* so many of them halve it */
	bool was_halved;      /* by its last change */
};

/* What happened in a window of time. */
struct budget_window {
	uint64_t wall_ns, cpu_ns, records;
};

void budget_init(struct budget *b, double share, uint64_t interval);
/* Returns whether b->shift has changed. */
bool budget_step(struct budget *b, const struct budget_window *w);

/*
 * Whether @stops at breakpoints in the window, which no interval changes, cost more than the
 * budget.
 */
bool budget_is_out_of_reach(const struct budget *b, const struct budget_window *w, uint64_t stops);

struct budget_run;
struct run;

/* Starts if requested; NULL: it was not. Observes @run until budget_stop. */
struct budget_run *budget_start(struct run *run);
/* NULL is ignored. */
void budget_stop(struct budget_run *b);

#endif
