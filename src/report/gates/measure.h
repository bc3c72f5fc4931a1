/*
 * The metrics of profiles that gates are about, of the whole and by call site: which recordings and
 * massif files have which, and where they have them.
 */
#ifndef PTMEM_REPORT_GATES_MEASURE_H
#define PTMEM_REPORT_GATES_MEASURE_H

#include "output/gate.h"
#include "report/diff_paths.h"

/* Whether @input, a recording or massif file, has values of @metric. */
bool measure_knows(const struct input *input, enum limit_metric metric);

/*
 * What @r has of the worst call, or part of the run, that @l is about: the value, and "call 17 of
 * handle", which the caller frees. False: it was not measured.
 */
bool measure_calls(const struct recording *r, const struct limit *l, double *value_out,
		   char **which_out);
/* "within handle, between load and serve": all that were; NULL: none. The caller frees it. */
char *measure_known_calls(const struct recording *r);

/*
 * Selects what @metric is about as views of @pair, and stores the values of both sides; of one
 * without an input 0. Both must know it.
 */
void measure_select(struct diff_pair *pair, enum limit_metric metric, double value[2]);
/* Whether what was selected has call paths. */
bool measure_has_paths(const struct diff_pair *pair, enum limit_metric metric);

/* The values by call site. */

/* A line of a site. */
struct measured_place {
	enum path_side side;
	uint32_t frame;  /* one of its frames: number in its input */
	uint64_t line;
	double value;
};

struct measured_site {
	double value[2];
	/*
	 * A frame of the line that changed: of those in new of which old has none with the same
	 * value, the one with most; otherwise of most.
	 */
	enum path_side side;
	uint32_t frame;
	bool is_unknown; /* the stacks are unknown: there is no frame */
	VEC(struct measured_place) place;
};

struct measured {
	const struct diff_pair *pair;
	const struct limit *of;        /* only call paths with its function; NULL = all */
	enum limit_metric metric;
	VEC(struct measured_site) site; /* by number in pair->match; the last: of unknown stacks */
	double sum[2];
	bool has_function;             /* there are such call paths */
};

/* What measure_select selected. */
void measured_init(struct measured *m, const struct diff_pair *pair, enum limit_metric metric,
		   const struct limit *of);
void measured_deinit(struct measured *m);

/*
 * Of what recordings have of each call path with the function of @of, the most bytes that it held
 * at one time: the largest, which is a bound of what all held together, becomes the only site of
 * @m; @most_out, the other bound by enum path_side, is the sum. measured_deinit frees @m.
 */
void measured_init_maximum(struct measured *m, const struct diff_pair *pair, const struct limit *of,
			   double most_out[2]);

/* Sorts the sites: growth before shrinkage; the largest first, which is_by_change means changes. */
void measured_sort(struct measured *m, bool is_by_change);
/* Adds site @i to @out. */
void measured_add_site(const struct measured *m, size_t i, gate_sites *out);
/* The name of its function, as both sides have it; the match's. */
const char *measured_function(const struct measured *m, size_t i);

#endif
