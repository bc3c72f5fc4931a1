/*
 * The command line of ptmem, and the two places from which options come before
 * it: ~/.config/ptmem/ptmemrc and PTMEM_OPTS. Later ones win.
 *
 * One table (option_table.c) drives parsing, defaults and --help; tests hold the man
 * page and the shell completions against it. A new option is one row there and
 * one field here. Values and ranges of Massif's options: spec/massif.md 2.9.
 */
#ifndef PTMEM_OPTIONS_H
#define PTMEM_OPTIONS_H

#include <stdio.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/types.h"
#include "base/words.h"
#include "profile/profile.h"
#include "sources.h"

#define OPTIONS_MAX_PIDS 256 /* processes attached to at once */

#define OPTION_OFF (-1.0)
#define OPTION_ALL 0.0

/* Which quantity of a profile folded stacks and flame graphs show. */
enum view { VIEW_LIVE, VIEW_PEAK, VIEW_EXIT, VIEW_TOTAL, VIEW_COUNT };

enum probes_mode { PROBES_AUTO, PROBES_BREAK, PROBES_JUMP };
enum xtree_mode { XTREE_NONE, XTREE_ALLOCS, XTREE_FULL };

/* A repeatable option's values, in the order given; the strings are not owned. */
struct option_strings {
	const char **data;
	size_t count, capacity;
};

struct options {
	/* what to profile: exactly one of command, pid and replay_file is there */
	char **command;           /* NULL-terminated, points into argv; else NULL */
	pid_t pid[OPTIONS_MAX_PIDS];
	uint32_t pid_count;       /* 0: not attaching */
	uint32_t trace;           /* bits 1 << enum source_kind */
	/* --monitor: talk to that ptmem, command is what to say; 0 = no */
	uint32_t monitor_pid;
	double duration;          /* seconds until detach; 0 = no limit */
	bool trace_children;      /* go on in programs that are exec'ed */
	/* patterns, commas between */
	const char *trace_children_skip, *trace_children_skip_by_arg; /* NULL = none */
	const char *soname_synonyms; /* NULL = none */
	bool mempools;            /* client requests of memory pools count */
	bool running_on_valgrind; /* RUNNING_ON_VALGRIND is 1 */
	enum probes_mode probes;
	uint64_t ring;            /* bytes, a power of two; 0 = chosen by the number of CPUs */

	/* the profile */
	enum time_unit time_unit;
	bool pages_as_heap;       /* mapped pages instead of heap blocks */
	uint32_t depth;
	double threshold;         /* percent */
	double peak_inaccuracy;   /* percent; may be negative, as Massif's may */
	bool peak_at_exit;
	uint32_t detailed_freq;
	uint32_t max_snapshots;
	uint32_t heap_admin;      /* bytes */
	uint32_t alignment;       /* bytes, a power of two */
	bool heap;                /* else the profile has no heap in it */
	bool stacks;              /* the stacks of threads are in it */
	uint32_t stack_sample_ms; /* between looks at threads that make no call; 0 = never */
	/* else a realloc to 0 that gives a block gives one of 1 byte */
	bool realloc_zero_bytes_frees;
	struct option_strings alloc_fn, ignore_fn;

	/* names */
	bool demangle, show_below_main, read_inline_info;
	struct option_strings fullpath_after;
	const char *extra_debuginfo_path; /* NULL = none */
	/* calls counted, memory sampled */
	bool memusage, mmap, no_timer;
	const char *memusage_out; /* NULL = standard error */
	const char *data_file;    /* NULL = none */
	uint32_t data_buffer;     /* records */
	const char *progname;     /* NULL = any */
	uint32_t sample_ms;       /* 0 = no samples */
	const char *sample_fields;
	const char *sample_out;   /* NULL = standard error */

	/* files; not expanded, not checked */
	const char *massif_out_file;
	enum xtree_mode xtree_memory;
	const char *xtree_memory_file;
	bool xtree_compress_strings;
	const char *events_file;  /* NULL = none */
	const char *replay_file;  /* NULL = none */

	/* growth */
	/* seconds; blocks younger are left out. OPTION_ALL = all; OPTION_OFF = no report */
	double leaks;
	bool leak_check;
	const char *leaks_out;    /* NULL = stderr */
	/* 0 = none; without leak_check nothing is an error, as with Massif */
	uint32_t error_exitcode;
	const char *folded_file, *flame_file; /* NULL = none */
	enum view view;
	double top;               /* seconds between tables; OPTION_OFF = none */

	/* messages */
	const char *log_file;     /* where messages go; NULL = not to a file */
	uint32_t log_fd;
	bool trace_malloc;        /* a line for each call */
	bool child_silent_after_fork;
	bool stats;
	enum log_level log_level; /* LOG_WARN by -q, LOG_VERBOSE by -v, LOG_DEBUG by -v -v */
	enum color_mode color;
	bool no_rc, command_line_only; /* the same, in Valgrind's words */
	bool help, version;       /* print that on stdout, end with 0; the rest is unchecked */

	char *desc;               /* the text behind "desc: "; owned */
	struct words words;       /* storage of strings that are not in argv; owned */
};

/*
 * Reads ptmemrc, PTMEM_OPTS and argv[1..]. *out is overwritten. 0, or -EINVAL
 * after one line on stderr that names the option and what it takes; nothing is
 * to be released then. @argv must outlive @out.
 */
int options_parse(int argc, char **argv, struct options *out);
void options_deinit(struct options *o);

void options_print_help(FILE *file);
void options_print_version(FILE *file);

#endif
