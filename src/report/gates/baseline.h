/*
 * --write-baseline and --baseline: what a program needs, in a file that a repository keeps, and
 * whose differences can be read.
 *
 *	FILE  := { "#" TEXT NL } "ptmem-baseline 1" NL HEAD { LINE }
 *	HEAD  := "runs " N NL [ "program " NAME NL ] [ "samples " BYTES NL ] [ "lines no" NL ]
 *	LINE  := METRIC " " VALUE [ " " FUNCTION ] NL       without a function: of the whole program
 *	       | "@" METRIC " " VALUE " " FUNCTION NL       of all call paths with the function
 *	VALUE := N | N ".." N                           of several runs: the least and the largest
 *
 * Lines are sorted by metric (limit.h) and function; each function that is a call site has one for
 * each metric that it has a value of. Functions that a gate names (allocations@parse>+0) have one
 * with "@", after these. There are no addresses, lines, process ids or times, and
 * names are those of frame_match.h, so that what moves is no difference. Resident memory, which no
 * two runs have in common, is only there as a band of several.
 */
#ifndef PTMEM_REPORT_GATES_BASELINE_H
#define PTMEM_REPORT_GATES_BASELINE_H

#include <stdio.h>

#include "output/gate.h"
#include "report/gates/fail_if.h"
#include "report/input.h"

/* A line of a function, of a run that was read; baselines have none. */
struct baseline_place {
	char *file;      /* of the source; NULL = unknown; owned */
	uint64_t line;
	double value;
};

struct baseline_row {
	char *name;      /* visible; NULL: of the whole program; owned */
	VEC(struct baseline_place) place; /* of the first run that has the function */
	double min, max; /* of the runs; a function that a run lacks has 0 there */
};

typedef VEC(struct baseline_row) baseline_rows;

struct baseline_metric {
	bool is_known;
	struct baseline_row sum;
	baseline_rows row; /* sorted by name */
};

/* What the call paths with a function have, which a gate names. */
struct baseline_function {
	enum limit_metric metric;
	char *name;      /* as given, visible; owned */
	bool is_there;   /* some call path has it */
	double min, max; /* of the runs */
	VEC(char *) site; /* call sites of these paths, of runs that were read; owned */
};

/* Of which process a run is: those that are parent and child are of one run. */
struct baseline_process {
	char *path;        /* of its file, visible; owned */
	uint64_t pid, parent; /* 0 = unknown */
	double start, end; /* seconds since 1970 */
};

/* Zeroed at first. */
struct baseline {
	VEC(struct baseline_process) process; /* of the runs that were read */
	unsigned runs;
	char *title;     /* the command; NULL = unknown */
	char *program;   /* its base name, visible; NULL = unknown */
	uint64_t interval; /* mean distance of samples, bytes; 0 = exact */
	/* the program has no debug information, or its inlined functions were merged like that */
	bool lacks_lines;
	char *doubt;     /* why these may not be whole runs of one program; NULL = they are */
	struct baseline_metric metric[LIMIT_METRICS];
	VEC(struct baseline_function) function;
};

/*
 * Before the first run: what the condition @f, which names a function, is about is measured. NULL,
 * or why baselines do not have it.
 */
const char *baseline_want(struct baseline *b, const struct fail_if *f);
/* NULL = it is not there. */
const struct baseline_function *baseline_find(const struct baseline *b, const struct fail_if *f);

/* Adds a run: a recording or a massif file, called @path in messages. */
void baseline_add(struct baseline *b, const char *path, const struct input *input);
void baseline_deinit(struct baseline *b);

/* The caller checks the stream for errors. */
void baseline_write(FILE *out, const struct baseline *b);
/* -errno if @path cannot be read; -EINVAL with *@why_out, which the caller frees. */
int baseline_read(const char *path, struct baseline *out, char **why_out);

/*
 * The functions, at most GATE_SITES, that grew in any case (the least new value is above the
 * largest old one), of call paths with the function @of, or all if it is NULL; and those that
 * changed, at most @max, the most first.
 */
void baseline_add_growth(const struct baseline_metric *old, const struct baseline_metric *new,
			 const struct baseline_function *of, gate_sites *out);
void baseline_add_changes(const struct baseline_metric *old, const struct baseline_metric *new,
			  size_t max, gate_sites *out);

#endif
