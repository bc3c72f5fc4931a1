/* What a target is asked to watch, and how; and the counters of its work. */
#ifndef PTMEM_TRACEE_STATE_TARGET_OPTIONS_H
#define PTMEM_TRACEE_STATE_TARGET_OPTIONS_H

#include "base/types.h"

struct custom_probes;
struct sigaction;

/* Programs that a followed process executes. */
struct follow_options {
	bool exec;            /* --trace-children=yes: new images are profiled, too */
	bool own_exec;        /* only those in the processes started and attached to */
	bool awaits_more;     /* processes are attached to while the loop runs, which none ends */
};

/* Programs that ptmem starts. */
struct start_options {
	bool keep_running;    /* they survive ptmem's death */
	/*
	 * actions for SIGXFSZ and SIGPIPE, which the caller ignores; NULL = the same as ptmem's
	 */
	const struct sigaction *file_signal, *pipe_signal;
};

/* How functions are watched. */
struct probe_options {
	bool none;            /* watch no functions (only processes) */
	/* a program in Go may have no function to watch: it is wanted for its own heap */
	bool none_in_go;
	bool no_promotion;    /* --probes=break */
	bool promote_at_once; /* --probes=jump */
	bool verify;          /* pads send every stack both incrementally and raw */
	uint64_t ring_size;   /* bytes, a power of two; 0 = by the number of CPUs */
	/* how long threads wait for a stopped ptmem; 0: they never wait for room in a ring */
	uint64_t max_wait_ns;
	const struct custom_probes *custom; /* functions of --probe; NULL = none */
	const char *somalloc; /* --soname-synonyms: which allocators are watched; NULL = all */
};

/* What is watched besides the allocation functions. */
struct watch_options {
	bool mapping_calls;   /* calls of mmap, mremap and munmap */
	bool brk;             /* HEAP_MAP, HEAP_UNMAP at brk */
	bool faults;          /* HEAP_FAULT at page faults */
	bool mappings;        /* HEAP_MAP, HEAP_UNMAP at mmap, munmap, mremap etc. */
	bool mempools;        /* client requests of memory pools are events */
	bool program_end;     /* HEAP_PROGRAM_END */
	bool catches;         /* where an exception is caught always stops: calls may end there */
	bool final_scan;      /* the sink wants it */
};

/* What events carry. */
struct event_options {
	bool no_stacks;       /* count events only, without their stacks */
	bool free_stacks;     /* frees have stacks */
	bool stack_pointers;  /* events carry sp */
	bool quick_threads;   /* quick events carry the thread, as with stack_pointers */
	bool count_instructions; /* --time-unit=i */
};

struct sample_options {
	/* mean distance of heap samples in bytes (base/byte_sampler.h); 0 = all calls are events */
	uint64_t heap;
	uint32_t shift;       /* the interval in force is 1 << shift times that; changes */
	uint64_t seed;        /* of these */
	uint64_t ns;          /* a HEAP_SAMPLE of every running thread, this often; 0 = never */
};

struct target_options {
	bool only_reads;      /* install nothing in a process: stop it, and release it again */
	bool makes_calls;     /* with only_reads: space_new injects calls; it is guarded */
	bool running_on_valgrind; /* RUNNING_ON_VALGRIND says yes */
	struct follow_options follow;
	struct start_options start;
	struct probe_options probes;
	struct watch_options watch;
	struct event_options events;
	struct sample_options samples;
};

/* Counters of the tracer's work. */

struct target_stats {
	uint64_t stops;          /* stops returned by waitpid */
	uint64_t trap_stops;     /* those at our breakpoints */
	uint64_t attach_ns, detach_ns; /* stops of all threads */
	uint64_t nested;         /* calls inside a watched call */
	uint64_t threads, processes; /* threads ever seen */
	uint32_t probes;         /* watched functions, of the first program */
	uint32_t unprobed;       /* definitions that could not be watched */
	uint32_t pages_left;     /* pages left mapped at detach */
	uint32_t masks_restored;   /* signal masks in which SIGTRAP was restored */
	uint64_t records, raw_records, ring_bytes; /* of rings that were closed */
	uint64_t ring_full;      /* stops because of a full ring */
	uint64_t promote_ns;     /* stops of all threads for it */
};

#endif
