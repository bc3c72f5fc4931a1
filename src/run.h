/*
 * One run of ptmem: what all its sessions share, and where it writes.
 *
 * The run owns all that it points to but the options and what has an end of its own:
 * the target (main.c), events_file and usage (main.c), top (top.c). Sessions free themselves.
 */
#ifndef PTMEM_RUN_H
#define PTMEM_RUN_H

#include <stdio.h>

#include "base/types.h"
#include "base/vec.h"
#include "options.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"

struct module;
struct session;
struct target;
struct top;
struct usage;

/* How many profiled images @pid has left behind. */
struct image_count {
	uint32_t pid;
	unsigned count;
};

/* What all sessions of one run of ptmem share. */
struct run {
	struct options *options;
	struct target *target;     /* NULL in a replay */
	struct symbols *symbols;
	struct filter *filter;
	struct filter *flame_filter; /* the same with the longest paths: for flame graphs */
	struct filter *whole_filter; /* of xtrees */
	VEC(struct module *) modules; /* by id; NULL where unknown; held */
	char *directory;           /* where relative file names stand: the one at the start */
	uint32_t sequence;         /* %n */
	VEC(struct session *) sessions; /* alive, by age */
	FILE *events_file;
	struct usage *usage;       /* NULL = nothing is counted or sampled */
	bool is_first_known;       /* the session that the command line asked for has begun */
	char *command;             /* as typed */
	VEC(struct image_count) images; /* that a process left behind by exec */
	unsigned files_failed;     /* outputs that could not be written */
	unsigned files_written;
	struct top *top;           /* top.c: NULL = no --top */
	uint64_t definite_bytes;   /* lost at the ends of all processes (--leak-check) */
};

/* @options stay the caller's; names of files are from the current directory on. */
void run_init(struct run *run, struct options *options);
void run_deinit(struct run *run);

/* Holds @m until the run ends, so that its addresses have names then. */
void run_add_module(struct run *run, struct module *m);
/* The module of id @id, or NULL. */
struct module *run_module(const struct run *run, uint32_t id);

/*
 * How many profiled images @pid has left behind by exec, to be raised; valid until the next call.
 */
unsigned *run_images(struct run *run, uint32_t pid);

/* Expands @pattern of option @option ("--data") for @pid: with several processes asked for, one
 * without %p and %n gets the pid before its extension. *path_out is the caller's. Not 0 after a
 * message. */
int run_expand(struct run *run, const char *option, const char *pattern, uint32_t pid,
	       char **path_out);

/* Whether the massif file is written: without a heap profile it says nothing, so only if nothing
 * else is. */
bool run_wants_massif(const struct run *run);

/* Whether the names of output files can be made; says why not. */
int run_check_patterns(const struct run *run);
/* Whether all files that are written at the end can be written where they shall stand; says why
 * not. A FIFO or a device is not tried. */
int run_check_out_files(struct run *run);

#endif
