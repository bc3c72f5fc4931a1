/* The recording of a session, for the files that make it: recording_run.c and its helpers. */
#ifndef PTMEM_RECORDING_RUN_INTERNAL_H
#define PTMEM_RECORDING_RUN_INTERNAL_H

#include "session/recording_file.h"
#include "session/recording_threads.h"

struct recording_run {
	struct recording *known;   /* META alone: the values */
	char *path;                /* NULL = not yet decided */
	struct recording_file file; /* what it has while the program runs */
	uint64_t first_size;       /* of it in memory, when it began again; bytes */
	struct recording *leaks;   /* LEAKS alone; NULL = nothing was checked */
	bool has_failed;           /* the file could not be written once, which was said */
	uint64_t flush_ns, sample_ns; /* when both are due */
	uint32_t named;            /* threads of the history whose names were read */
	struct recording_threads threads;
};

#endif
