/*
 * The gates of ptmem-report: a profile with its limits (--limit), two profiles or a baseline and
 * profiles with conditions (--fail-if).
 *
 * Each function fills @g, which may have warnings already, and which the caller frees: the metrics,
 * what was checked, and, if a form of gates is printed, the call sites. Nothing is said of what
 * fails (gate_log). 0, EXIT_GROWN, or EXIT_REFUSED after a message if something cannot be checked.
 */
#ifndef PTMEM_REPORT_GATES_H
#define PTMEM_REPORT_GATES_H

#include "report/diff_paths.h"
#include "report/gates/baseline.h"
#include "report/show.h"

/* The frames of @pair are matched. */
int gates_of_pair(const struct report_request *r, const struct diff_pair *pair, struct gate *g);
/* @input: a recording or a massif file. */
int gates_of_profile(const struct report_request *r, const struct input *input, struct gate *g);
int gates_of_baseline(const struct report_request *r, const struct baseline *old,
		      const struct baseline *new, struct gate *g);

/* Whether @r prints or checks one. */
bool gates_are_wanted(const struct report_request *r);
/* Says what fails, and prints @g if a form of gates was asked for. */
void gates_show(const struct report_request *r, const struct gate *g);

#endif
