/*
 * One run of ptmem: what all its sessions share, and where it writes.
 *
 * The run owns all that it points to but the options, the observers and what main.c ends: the
 * target, events_file and memusage_run. Sessions free themselves.
 */
#ifndef PTMEM_RUN_H
#define PTMEM_RUN_H

#include <signal.h>
#include <stdio.h>

#include "base/types.h"
#include "base/vec.h"
#include "session/options.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"
#include "tracee/state/registry.h"

struct earlier_blocks;
struct memusage_run;
struct module;
struct observer;
struct session;
struct target;

/* What the names of a process's files depend on. */
struct process_files {
	uint32_t pid;
	unsigned images;      /* profiled programs that it replaced by exec */
	unsigned numbers;     /* given to files that would share a name */
	unsigned last_number; /* of the files of the program before; 0 = they have none */
	uint32_t streams;     /* enum stream_file bits: which of these its last program wrote */
	bool has_ended;       /* its files are complete */
	bool is_reused;       /* an earlier process had the same pid */
};

/* What all sessions of one run of ptmem share. */
struct run {
	struct options *options;
	struct registry registry;  /* of all that is profiled: files, numbers */
	struct target *target;     /* NULL in a replay */
	/* what SIGXFSZ and SIGPIPE were when ptmem began, which the program inherits */
	struct sigaction file_signal, pipe_signal;
	struct symbols *symbols;
	struct filter *filter;
	struct filter *flame_filter; /* the same with the longest paths: for flame graphs */
	struct filter *whole_filter; /* of xtrees */
	VEC(struct module *) modules; /* by id; NULL where unknown; held */
	char *directory;           /* current one at the start, for relative file names */
	uint32_t sequence;         /* %n */
	VEC(struct session *) sessions; /* alive, by age */
	FILE *events_file;         /* FIFO or device for all events; NULL: sessions have files */
	struct memusage_run *memusage_run; /* NULL = calls are not counted */
	VEC(const struct observer *) observers;
	taddr_t *pcs;              /* scratch of session_stack_node; NULL = not yet needed */
	bool is_first_known;       /* the session that the command line asked for has started */
	char *command;             /* as typed */
	VEC(struct process_files) processes;
	/* the processes whose files have the names as given; 0 = not yet known */
	uint32_t first_pid, first_counted; /* counted: as memusage does */
	uint64_t sample_seed;      /* of --heap-sample: --seed, or a random number */
	unsigned files_failed;     /* outputs that could not be written */
	unsigned files_written;
	struct earlier_blocks *earlier; /* of the process that is being attached to; NULL = none */
	uint64_t definite_bytes;   /* lost at the ends of all processes (--leak-check) */
};

/* @options stay the caller's; names of files are from the current directory on. */
void run_init(struct run *run, struct options *options);
void run_deinit(struct run *run);

/* Holds @m until the run ends, so that its addresses have names then. */
void run_add_module(struct run *run, struct module *m);
/* The module of id @id, or NULL. */
struct module *run_module(const struct run *run, uint32_t id);

/* The record of @pid's files, added if it is new; valid until the next call. */
struct process_files *run_process(struct run *run, uint32_t pid);

/* A name to be made, for a file of process @pid. */
struct file_request {
	const char *option;   /* "--data", for messages */
	const char *pattern;
	const char *source;   /* inserted; NULL = none */
	uint32_t pid;
	bool needs_pid;       /* another process may have a file of the same name */
	unsigned number;      /* distinguishes it from others of the process; 0 = not needed */
};

/* Not 0 after a message; *path_out is the caller's. */
int run_file_name(struct run *run, const struct file_request *r, char **path_out);

#endif
