/* The recording of a session, for the files that make it: recording_run.c and its helpers. */
#ifndef PTMEM_RECORDING_RUN_INTERNAL_H
#define PTMEM_RECORDING_RUN_INTERNAL_H

#include "base/call_totals.h"
#include "session/recording_file.h"
#include "session/recording_threads.h"

/* What a session had counted when a part of its recording began; all zero for the first. */
struct recording_base {
	uint64_t pauses_ns, stacks, complete_stacks;
	struct call_totals calls;
};

struct recording_run {
	struct recording *known;   /* META alone: the values */
	char *path;                /* NULL = not yet decided */
	struct recording_file file; /* what it has while the program runs */
	uint64_t first_size;       /* of it in memory, when it began again; bytes */
	struct recording *leaks;   /* LEAKS alone; NULL = nothing was checked */
	bool has_failed;           /* the file could not be written once, which was said */
	/* too large to append to it: copies of ptmem write it anew (recording_bound.h) */
	bool is_rewritten;
	bool is_writing;           /* one of these is at work */
	uint64_t rewrite_ns;       /* when the next one may begin */
	uint64_t flush_ns, sample_ns; /* when both are due */
	uint32_t named;            /* threads of the history whose names were read */
	struct recording_threads threads;
	/* the current part (recording_part.h) */
	unsigned part;             /* its number; 0: the recording has no parts */
	uint64_t part_start;       /* since the start of the process, ns */
	size_t part_value;         /* its first value: markers before it are of other parts */
	uint64_t next_part_ns;     /* when the next one is due; 0 = never */
	struct recording_base base;
};

#endif
