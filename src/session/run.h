/*
 * One run of ptmem: data shared by all its sessions, and its output files. The run owns everything
 * it points to except the options, the observers and what main.c frees: the target, events_file,
 * memusage_run and earlier. Sessions free themselves.
 */
#ifndef PTMEM_SESSION_RUN_H
#define PTMEM_SESSION_RUN_H

#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/types.h"
#include "session/inspect/cold_watch.h"
#include "session/limits.h"
#include "session/one_page.h"
#include "session/options.h"
#include "session/summaries.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/module.h"

struct calltree_frame;
struct earlier_blocks;
struct memusage_run;
struct module;
struct observer;
struct session;
struct target;

/* What the file names of a process depend on. */
struct process_files {
	uint32_t pid;
	unsigned images;      /* number of profiled programs that it has replaced by exec */
	unsigned numbers;     /* numbers given to files that would share a name */
	unsigned parts;       /* number of recordings that were begun (--record-every) */
	unsigned last_number; /* number in the previous program's file names; 0 = none */
	uint32_t streams;     /* bits of enum output: which files its last program wrote */
	bool has_ended;       /* its files are complete */
	bool is_reused;       /* an earlier process had the same pid */
	bool is_summed;       /* counted by summaries.processes */
	/* programs that it ran before by exec, whose profiles were superseded */
	char *before;         /* their names, separated by commas; NULL = none */
	unsigned before_count;
	uint64_t before_peak; /* the most bytes that one of them had in use */
	struct session *former; /* of the program that it has just replaced (session.h) */
};

struct run;

/* A copy of ptmem that writes a file: recording_now.h. */
struct run_writer {
	int fd;               /* for background_result */
	char *path;           /* owned */
	bool counts;          /* a failure is one of the run */
	uint32_t part_of;     /* the process of which it writes a part; 0: it does not */
	unsigned part;        /* its number */
	bool has_file;        /* the file has what was written of the part while it was recorded */
	uint64_t begin_ns;
	void (*note)(struct run *run, const struct run_writer *w, int result); /* may be NULL */
};

/*
 * A part of the recording of process @pid that has ended. Paths are owned. At its place is a file
 * that may be incomplete if it is elsewhere, too.
 */
struct run_part {
	uint32_t pid;
	unsigned number;
	char *path;      /* its place; NULL = nothing is there */
	char *elsewhere; /* since it could not be written there (out.h); NULL = nowhere */
};

/* Shared by all sessions of one run of ptmem. */
struct run {
	struct options *options;
	struct registry registry;  /* of all that is profiled: files, numbers */
	struct target *target;     /* NULL in a replay */
	/* ptmem's initial actions for SIGXFSZ and SIGPIPE, which the program inherits */
	struct sigaction file_signal, pipe_signal;
	struct symbols *symbols;
	struct symbols *fresh_symbols; /* never asked: for servers of --listen, which are forks */
	struct filter *filter;
	struct filter *flame_filter; /* the same, with paths of maximum length: for flame graphs */
	struct filter *whole_filter; /* for xtrees */
	VEC(struct module *) modules; /* by id; NULL if unknown; references */
	char *directory;           /* the initial one, for relative file names */
	uint32_t sequence;         /* %n */
	VEC(struct session *) sessions; /* live sessions, oldest first */
	VEC(struct session *) ended_forks; /* session.h; oldest first */
	uint64_t ended_fork_bytes; /* memory of these */
	uint32_t programs;         /* number of programs that began */
	FILE *events_file;         /* FIFO or device for all events; NULL: one file each */
	struct memusage_run *memusage_run; /* NULL = calls are not counted */
	VEC(const struct observer *) observers;
	taddr_t *pcs, *fps;        /* scratch memory of session_stack_node; NULL = not needed yet */
	bool is_first_known;       /* the session of the command line has started */
	char *command;             /* as given */
	VEC(struct process_files) processes;
	VEC(struct run_writer) writers; /* which have not ended yet, oldest first */
	VEC(struct run_part) parts;     /* which have ended, of --record-every */
	char *fallback_directory;       /* out_directory_name for these; NULL = not needed */
	bool is_elsewhere;              /* the last one could not be written to its place */
	uint64_t place_ns;              /* when its writing began */
	/* processes whose files have the names as given; 0 = not known yet */
	uint32_t first_pid, first_counted; /* calls are counted as in memusage */
	uint64_t sample_seed;      /* for --heap-sample: --seed, or a random number */
	unsigned files_failed;     /* number of outputs that could not be written */
	struct cold_times cold;    /* of --cold */
	bool must_end;             /* ptmem ends without waiting for the program it started */
	struct earlier_blocks *earlier; /* for the process being attached to; NULL = none */
	struct suppressions *suppressions; /* of leaks; NULL = none */
	uint64_t lost_bytes;       /* directly or not, at the ends of all processes */
	uint64_t most_resident;    /* the most that a process had at its end; 0 = unknown */
	struct custom_probes probes; /* of --probe */
	VEC(struct limit) limits;  /* their texts are owned */
	VEC(struct limit_result) results; /* one for each limit */
	struct limit_values values;
	struct gate gate;          /* what was found of the limits; its failures count */
	/* --html of several processes, and what is said of them at the end; main.c frees both */
	struct one_page page;
	struct summaries summaries;
	bool is_repeated;          /* another run of --repeat has the names of files as given */
	bool is_set_up;            /* files and options are all right: the program was to be run */
	struct label_option *labels;      /* one for each --label; owned. NULL = none */
	bool has_label_functions;         /* any label is of a function */
	struct type_table *label_types;   /* for them; owned */
	char *label_dirs;                 /* for the table; owned */
	bool needs_within;         /* calls of functions are watched (--within) */
	VEC(struct within_section) sections;
	bool needs_history;        /* a limit needs temporary allocations */
	bool needs_peak;           /* labels, or a limit, need what paths have at the exact peak */
};

/* @options stay the caller's. File names are relative to the current directory. */
void run_init(struct run *run, struct options *options);
void run_deinit(struct run *run);

/* References @m until the run ends, so that its addresses can be symbolized then. */
void run_add_module(struct run *run, struct module *m);
/* The module of id @id, or NULL. */
struct module *run_module(const struct run *run, uint32_t id);

/*
 * The names of a frame, of whatever kind it is. run_function: only that of the function, from
 * symbol tables, as symbols_function; NULL = unknown.
 */
const struct symbol *run_symbol(const struct run *run, const struct calltree_frame *f,
				enum symbol_part part);
const char *run_function(const struct run *run, const struct calltree_frame *f);

/* The record of @pid's files, created if new; valid until the next call. */
struct process_files *run_process(struct run *run, uint32_t pid);

/* The tracee options of a run. */

struct target_options;

/* Computes all of @out from the options of @run. */
void tracee_options_init(struct target_options *out, const struct run *run);

#endif
