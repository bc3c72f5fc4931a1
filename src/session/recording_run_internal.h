/* The recording of a session, for the files that make it: recording_run.c and its helpers. */
#ifndef PTMEM_RECORDING_RUN_INTERNAL_H
#define PTMEM_RECORDING_RUN_INTERNAL_H

#include "session/recording_values.h"
#include "base/call_totals.h"
#include "session/recording_file.h"
#include "session/recording_threads.h"

/* What a session had counted when a part of its recording began; all zero for the first. */
struct recording_base {
	uint64_t pauses_ns, stacks, complete_stacks;
	struct call_totals calls;
};

/* The time that a recording covers. All zero: the whole run. */
struct recording_span {
	unsigned part;             /* its number (recording_part.h); 0: it is the whole run */
	uint64_t start_ns;         /* since the start of the process */
	/* the same as META has them; "": when the process started */
	struct recording_moment moment;
	size_t first_value;        /* of its markers: those before are of other parts */
	struct recording_base base;
};

struct recording_run {
	struct recording *known;   /* META alone: the values */
	char *path;                /* NULL = not yet decided */
	struct recording_span span; /* of the file */
	struct recording_file file; /* what it has while the program runs */
	struct recording_file live; /* the same of the whole run, in memory, for --listen */
	uint64_t first_size;       /* of that, when it began again; bytes */
	struct recording *leaks;   /* LEAKS alone; NULL = nothing was checked */
	bool has_failed;           /* the file could not be written once, which was said */
	/* too large to append to it: copies of ptmem write it anew (recording_bound.h) */
	bool is_rewritten;
	bool is_writing;           /* one of these is at work */
	uint64_t rewrite_ns;       /* when the next one may begin */
	uint64_t flush_ns, sample_ns; /* when both are due */
	uint32_t named;            /* threads of the history whose names were read */
	struct recording_threads threads;
	uint64_t next_part_ns;     /* when the next part is due; 0 = never */
};

#endif
