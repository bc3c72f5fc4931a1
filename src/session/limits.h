/*
 * --limit: what the profiles of a run must stay below (output/limit.h), as a gate for tests, and
 * --limits-out, a file of what was found. With --repeat a limit is exceeded if it is in every run:
 * a metric that differs from run to run then has its least value.
 */
#ifndef PTMEM_SESSION_LIMITS_H
#define PTMEM_SESSION_LIMITS_H

#include "output/gate.h"
#include "output/limit.h"

struct leaf_amounts;
struct options;
struct report;
struct run;
struct session;

/* Of one run of the program; all of it is owned. */
struct limit_result {
	bool is_exceeded, has_function;
	double value;     /* of the process that has most */
	char *process;    /* that, "process 12, ./a"; NULL = no process was checked */
	gate_sites site;  /* if it is exceeded, the call sites with most */
	unsigned exceeded; /* number of processes that exceed it */
	VEC(char *) others; /* some of these, but for the one with most: "process 13, ./b: 7" */
};

/* What the processes of a run had: the most of each, and of leaks the sum. */
struct limit_values {
	bool is_known[LIMIT_METRICS];
	double value[LIMIT_METRICS];
	bool is_estimate;
};

/* Why calls (--within) cannot be measured with @o; NULL: they can. */
const char *limits_why_not_within(const struct options *o);
/* NULL and *@out, or why @text cannot be a limit of a run with @o. */
const char *limits_check_text(const struct options *o, const char *text, struct limit *out);

/*
 * Fills in r->limits and r->needs_history from --limit and --limits-file, in which a line has a
 * limit or nothing, and a comment that begins with '#'. 0, or -errno after a message. limits_close
 * frees them.
 */
int limits_open(struct run *r);
void limits_close(struct run *r);

/*
 * Limits of the peak of a function each have a group of leaves in the profiles (profile/groups.h):
 * how many there are, and which of them the leaf of @node is in.
 */
size_t limits_count_groups(const struct run *r);
void limits_find_groups(const struct run *run, const struct report *r, uint32_t node, bool *is_in);

/*
 * Notes in run->results what the profile of @s, which has ended, has of all limits but those of
 * leaks.
 */
void limits_check(struct session *s);
/* Of each leaf of @r, a report of a process that has ended, what is lost. */
void limits_note_leaks(struct run *run, const struct report *r, const struct leaf_amounts *lost);
/*
 * Checks those of leaks, after the last process of @r has ended, and fills r->gate: a check for
 * each limit, with all processes that exceed it. Without --repeat says which limits do not hold,
 * each once, with the call sites of the process that has most.
 */
void limits_finish(struct run *r);

/* Writes @g as each --limits-out of @r asks. 0, or the first -errno, after messages. */
int limits_write(struct run *r, const struct gate *g);

#endif
