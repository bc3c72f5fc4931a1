/* Which functions and calls are watched in the traced programs, and how. */
#ifndef PTMEM_TRACEE_STATE_TARGET_OPTIONS_H
#define PTMEM_TRACEE_STATE_TARGET_OPTIONS_H

#include "base/types.h"

struct sigaction;

struct target_options {
	bool follow_exec;     /* --trace-children=yes: new images are profiled, too */
	/* does not follow forks, only exec in a followed process */
	bool follow_own_exec;
	bool keep_running;    /* started programs survive ptmem's death */
	bool no_probes;       /* watch no functions (only processes) */
	bool only_reads;      /* install nothing in a process: stop it, and release it again */
	bool no_stacks;       /* count events only, without their stacks */
	bool stack_pointers;  /* events carry sp */
	bool quick_threads;   /* quick events carry the thread, as with stack_pointers */
	bool mapping_calls;   /* watch mmap, mremap and munmap, too */
	bool program_end;     /* HEAP_PROGRAM_END */
	/* mean distance of heap samples in bytes (base/byte_sampler.h); 0 = all calls are events */
	uint64_t heap_sample;
	uint64_t sample_seed; /* of these */
	uint64_t sample_ns;   /* a HEAP_SAMPLE of every running thread, this often; 0 = never */
	bool count_instructions; /* --time-unit=i */
	bool no_promotion;    /* --probes=break */
	bool promote_at_once; /* --probes=jump */
	uint64_t ring_size;   /* bytes, a power of two; 0 = by the number of CPUs */
	bool final_scan;       /* the sink wants it */
	bool verify;          /* pads send every stack both incrementally and raw */
	bool watch_brk;       /* HEAP_MAP, HEAP_UNMAP at brk */
	bool watch_faults;    /* HEAP_FAULT at page faults */
	bool watch_mappings;  /* HEAP_MAP, HEAP_UNMAP at mmap, munmap, mremap etc. */
	bool free_stacks;     /* frees have stacks */
	bool mempools;        /* client requests of memory pools are events */
	bool running_on_valgrind; /* RUNNING_ON_VALGRIND says yes */
	/*
	 * a started program's actions for SIGXFSZ and SIGPIPE, which the caller ignores; NULL = the
	 * same as ptmem's
	 */
	const struct sigaction *file_signal, *pipe_signal;
	const char *somalloc; /* --soname-synonyms: which allocators are watched; NULL = all */
};

#endif
