/*
 * --repeat=N: the program runs N times. A metric with the same value in each run is deterministic
 * here; others have a band, from the least to the largest. A limit is exceeded if it is in every
 * run: then the whole band is beyond it, and no noise can be the cause.
 */
#ifndef PTMEM_SESSION_REPEAT_H
#define PTMEM_SESSION_REPEAT_H

#include <sys/types.h>

#include "output/gate.h"

struct run;

/* Zeroed before the first run; all of it is owned. */
struct repeat {
	unsigned runs;               /* that count */
	unsigned cut;                /* the number of the run that a signal has ended; 0 = none */
	off_t input;                 /* where standard input began; negative: in no file */
	struct gate gate;
	VEC(struct repeat_limit) limit; /* as in struct run */
	/* of the names of files (run.h), for the next run */
	uint32_t first_pid, first_counted, sequence;
};

/* Of a limit: in how many runs it is exceeded, its band, and the sites of the last such run. */
struct repeat_limit {
	enum limit_metric metric;
	char *text;
	unsigned known, exceeded;
	double min, max;
	gate_sites site;
};

/*
 * Before a run: its files get other names than those of the runs before, and it reads standard
 * input from the same place, if that is a file.
 */
void repeat_begin(struct repeat *r, struct run *run);
/* After it. @is_cut: a signal has ended it, and what it had till then counts if it is the first. */
void repeat_add(struct repeat *r, struct run *run, bool is_cut);
/* After the last of @wanted or fewer: prints what was found, and completes r->gate. */
void repeat_finish(struct repeat *r, unsigned wanted);
void repeat_deinit(struct repeat *r);

#endif
