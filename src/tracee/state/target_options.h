/* What is watched in the traced programs, and how. */
#ifndef PTMEM_TRACEE_STATE_TARGET_OPTIONS_H
#define PTMEM_TRACEE_STATE_TARGET_OPTIONS_H

#include "base/types.h"

struct sigaction;

struct target_options {
	bool follow_exec;     /* --trace-children=yes: new images are profiled too */
	/* of no forks, but of what a process that is followed executes itself */
	bool follow_own_exec;
	bool keep_running;    /* started programs survive ptmem's death */
	bool no_probes;       /* watch no function (only processes) */
	bool only_reads;      /* nothing is put into a process: it is stopped, and left again */
	bool no_stacks;       /* events are counted only: their stacks are not read */
	bool stack_pointers;  /* events carry sp */
	bool quick_threads;   /* quick events carry the thread, as they do with sp */
	bool mapping_calls;   /* watch mmap, mremap and munmap, too */
	bool program_end;     /* HEAP_PROGRAM_END */
	/* mean distance of heap samples in bytes (base/byte_sampler.h); 0 = all calls are events */
	uint64_t heap_sample;
	uint64_t sample_seed; /* of these */
	uint64_t sample_ns;   /* HEAP_SAMPLE of every thread that runs, this often; 0 = never */
	bool count_instructions; /* --time-unit=i */
	bool no_promotion;    /* --probes=break */
	bool promote_at_once; /* --probes=jump */
	uint64_t ring_size;   /* bytes, a power of two; 0 = by the number of CPUs */
	bool final_scan;       /* the sink wants it */
	bool verify;          /* pads send every stack both ways */
	bool watch_brk;       /* HEAP_MAP, HEAP_UNMAP at brk */
	bool watch_faults;    /* HEAP_FAULT at page faults */
	bool watch_mappings;  /* at mmap, munmap, mremap and their like */
	bool free_stacks;     /* frees come with their stacks */
	bool mempools;        /* client requests of memory pools are events */
	bool running_on_valgrind; /* RUNNING_ON_VALGRIND says yes */
	/*
	 * what SIGXFSZ and SIGPIPE, which the caller ignores, are to a started program; NULL = as
	 * to ptmem
	 */
	const struct sigaction *file_signal, *pipe_signal;
	const char *somalloc; /* --soname-synonyms: which allocators are watched; NULL = all */
};

#endif
