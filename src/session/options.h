/*
 * The options of a run. src/cli reads them; after the checks they do not change. Values and ranges
 * of Massif's options: doc/massif.md 2.9.
 */
#ifndef PTMEM_SESSION_OPTIONS_H
#define PTMEM_SESSION_OPTIONS_H

#include <sys/types.h>

#include "base/amount.h"
#include "base/log.h"
#include "base/option_row.h"
#include "base/shell_words.h"
#include "base/types.h"
#include "profile/profile.h"
#include "session/memory_source.h"
#include "symbols/code_owner.h"

#define OPTIONS_MAX_PIDS 256 /* maximum number of processes attached to at once */

#define OPTION_OFF (-1.0)
#define OPTION_ALL 0.0

/* Which values folded stacks and flame graphs show. */
enum shown_paths { SHOW_LIVE, SHOW_PEAK, SHOW_EXIT, SHOW_TOTAL, SHOW_CALLS, SHOW_COLD };

enum help_mode { HELP_NONE, HELP_EVERYDAY, HELP_ALL };
enum probes_mode { PROBES_AUTO, PROBES_BREAK, PROBES_JUMP };
/* Functions of interpreted programs: in the place of the interpreter's, alone, with all, none. */
enum interpreters_mode {
	INTERPRETERS_AUTO, INTERPRETERS_ONLY, INTERPRETERS_MIXED, INTERPRETERS_NO
};
/*
 * Small objects of Python programs: those that are started get PYTHONMALLOC=malloc, in others its
 * own allocator is watched; one of both; neither.
 */
enum python_malloc {
	PYTHON_MALLOC_AUTO, PYTHON_MALLOC, PYTHON_MALLOC_PROBE, PYTHON_MALLOC_KEEP
};
enum xtree_mode { XTREE_NONE, XTREE_ALLOCS, XTREE_FULL };

/* -p, --follow: processes that run. */
struct options_attach {
	pid_t pid[OPTIONS_MAX_PIDS];
	uint32_t pid_count;       /* 0: none */
	struct option_strings follow; /* names, units and control groups to be followed */
	double duration;          /* seconds until detach; 0 = no limit */
	bool earlier_blocks;      /* include blocks from before the attach */
};

#define OPTIONS_COPY_AUTO (UINT64_C(1) << 62) /* copy_ahead_most */
/* Reports on what memory consists of. */
struct options_inspect {
	/* report without profiling: "" = the processes of -p; else a core file; NULL = no */
	const char *what;
	const char *out;          /* NULL = standard output; with at_exit: error */
	uint64_t copy;            /* processes of so many bytes are copied, or OPTIONS_COPY_AUTO */
	bool pointers;            /* also finds what points to blocks */
	double cold;              /* finds what is not touched for so many seconds; 0 = no */
	bool at_exit;             /* profiled, and reported at the end and at SIGUSR1 */
};

/* The heap graph: an inspection that is reported as what holds each block. */
struct options_graph {
	const char *what;         /* as options_inspect.what, which then has it, too */
	const char *out;          /* NULL = as options_inspect.out */
	uint32_t depth;           /* levels that are shown below variables and the like */
	const char *who_holds;    /* graph_wish.holds; NULL = all */
	const char *containers;   /* file of descriptions (graph/containers.h); NULL = none */
};

/* Programs that the profiled ones execute, and forks. */
struct options_children {
	bool trace;               /* also profile executed programs */
	/* a process that ptmem started or attached to is followed through its own execs */
	bool follow_exec;
	enum python_malloc python_malloc;
	const char *skip, *skip_by_arg; /* patterns, separated by commas; NULL = none */
	bool silent_after_fork;
};

/* What is traced, and how. */
struct options_tracing {
	uint32_t sources;         /* bits 1 << enum memory_source_kind */
	struct option_strings probe;   /* tracee/state/custom_probe.h */
	const char *soname_synonyms; /* NULL = none */
	bool mempools;            /* count client requests of memory pools */
	bool running_on_valgrind; /* RUNNING_ON_VALGRIND is 1 */
	enum probes_mode probes;
	/* mean distance of samples in bytes; 0 = off; 1: also off, every call counts */
	uint64_t heap_sample;
	/* seconds; OPTION_OFF = by the interval of samples */
	double max_wait;
	double budget;            /* percent of a CPU; 0 = the interval does not change */
	uint32_t seed;            /* seed for the samples; 0 = random */
	uint64_t ring;            /* bytes, a power of two; 0 = 1 MiB */
	uint32_t verify_stacks;   /* compare one in so many; 0 = none */
};

/* What is in the profile. */
struct options_profile {
	enum time_unit time_unit;
	bool pages_as_heap;       /* mapped pages instead of heap blocks */
	uint32_t depth;
	double threshold;         /* percent */
	double peak_inaccuracy;   /* percent; may be negative, as Massif's may */
	bool peak_at_exit;
	uint32_t detailed_freq;
	uint32_t max_snapshots;
	uint32_t heap_admin;      /* in bytes */
	uint32_t alignment;       /* bytes, a power of two */
	bool heap;                /* false: the profile has no heap */
	bool stacks;              /* include the stacks of threads */
	uint32_t stack_sample_ms; /* between samples of threads without calls; 0 = never */
	/* false: a block returned by realloc(p, 0) counts 1 byte */
	bool realloc_zero_bytes_frees;
};

/* Which frames are shown, and their names. */
struct options_names {
	struct option_strings alloc_fn, ignore_fn;
	bool demangle, show_below_main, read_inline_info, debuginfod;
	struct option_strings fullpath_after;
	struct my_code my_code;
	const char *extra_debuginfo_path; /* NULL = none */
	enum interpreters_mode interpreters;
};

/* Calls are counted as memusage does. */
struct options_memusage {
	bool count, mmap, no_timer;
	const char *out;          /* NULL = standard error */
	const char *data_file;    /* NULL = none */
	uint32_t data_buffer;     /* records */
	const char *progname;     /* NULL = any */
};

/* Resident memory is sampled. */
struct options_samples {
	uint32_t ms;              /* 0 = no samples */
	const char *fields;
	const char *out;          /* NULL = standard error */
};

/* Names of files, not expanded, not checked; NULL = none. */
struct options_files {
	const char *massif;       /* NULL: the user wants none, or another output instead */
	enum xtree_mode xtree_mode;
	const char *xtree;
	bool xtree_compress_strings;
	const char *events, *replay;
	const char *record, *html;
	bool embeds_sources;      /* the page has sources, found there or in these directories */
	struct option_strings sources;
	double record_every;      /* seconds after which the next recording begins; 0 = never */
	uint32_t record_keep;     /* number of these to keep; 0 = all */
	uint64_t record_limit;    /* bytes of each recording; 0 = any */
	struct option_strings limits; /* --limits-file */
	struct option_strings limits_out; /* what was found of them, each in its form */
	bool free_stacks;         /* the recording has the stacks that release blocks */
	const char *folded, *flame;
	enum shown_paths view;           /* of these two */
};

/* The server. */
struct options_listen {
	const char *at;           /* where it listens, "": anywhere; NULL = there is none */
	const char *token;        /* the file of its secret; NULL = none */
	bool is_open;             /* anyone may ask it */
	double linger;            /* seconds for which it answers after the end */
};

struct options_leaks {
	/* seconds; omit younger blocks. OPTION_ALL = all; OPTION_OFF = no report */
	double age;
	bool check;
	const char *out;          /* NULL = stderr */
	uint32_t error_exitcode;  /* 0 = none; needs a check */
	/* omit younger blocks; seconds of OPTION_OFF = by what is reported (leak_report.c) */
	struct amount_age older_than;
	uint32_t shown_kinds;     /* in texts: bits in the order of enum leakcheck_state */
	bool holders;             /* what holds reachable blocks */
	struct option_strings suppressions; /* files */
	uint32_t gen_suppressions; /* not 0: print them */
};

struct options_messages {
	const char *log_file;     /* destination of messages; NULL = not a file */
	uint32_t log_fd;
	bool trace_malloc;        /* one line for each call */
	bool stats;
	enum log_level level;     /* LOG_WARN by -q, LOG_VERBOSE by -v, LOG_DEBUG by -v -v */
	enum color_mode color;
};

/* What the command line is for. */
struct options_invocation {
	/* print it on stdout and exit with 0; other options are not checked */
	enum help_mode help;
	bool version;
	bool no_rc, command_line_only; /* synonyms; the second is Valgrind's */
};

struct options {
	/* what to profile: exactly one of command, attach.pid and files.replay is set */
	char **command;           /* NULL-terminated, points into argv; else NULL */
	char **argv;              /* ptmem's own command line, for messages; the caller's */
	bool is_brief;            /* reports have at most BRIEF_SIZE bytes */
	struct options_attach attach;
	struct options_inspect inspect;
	struct options_graph graph;
	struct options_children children;
	struct options_tracing tracing;
	struct options_profile profile;
	struct options_names names;
	struct options_memusage memusage;
	struct options_samples samples;
	struct options_files files;
	struct options_listen listen;
	struct options_leaks leaks;
	struct options_messages messages;
	struct options_invocation invocation;
	struct option_strings limits; /* limits.h */
	struct option_strings labels; /* labels.h */
	struct option_strings within; /* functions of which each call is measured; within.h */
	uint32_t repeat;              /* how often the program runs (repeat.h) */
	struct option_strings when; /* conditions with actions: condition.h */
	double top;               /* seconds between tables; OPTION_OFF = none */
	/* --monitor: send `command` to the ptmem with that pid; 0 = no */
	uint32_t monitor_pid;

	uint64_t given[2];        /* by row of the table: given on the command line */
	char *desc;               /* text for "desc: "; owned */
	char *all;                /* all options, for recordings; owned; NULL = none */
	struct words words;       /* storage for strings that are not in argv; owned */
};

struct brief_command;
/* The command line, for reports that name it. */
void options_command(const struct options *o, struct brief_command *out);
/* Whether calls are counted as memusage counts them. */
bool options_count_calls(const struct options *o);
/* Whether only samples are wanted: of the program only start and end are watched. */
bool options_sample_only(const struct options *o);
/* The mean distance of samples in bytes; 0: every allocation is an event. */
uint64_t options_sample_interval(const struct options *o);
/* Whether live blocks are reported (--leaks, --leak-check), for which their age is recorded. */
bool options_report_leaks(const struct options *o);
/* Whether SIGUSR1 triggers a report. */
bool options_report_on_signal(const struct options *o);
/* Whether a recording is made: for --record, --html and --listen. */
bool options_record(const struct options *o);
/*
 * Whether massif files are written. Without a heap profile they are empty, so they are written only
 * if there is no other output.
 */
bool options_write_massif(const struct options *o);
/* Whether stack use is profiled (--stacks). */
bool options_profile_stacks(const struct options *o);
/* The traced sources: bits 1 << enum memory_source_kind. --pages-as-heap belongs to the heap. */
uint32_t options_sources(const struct options *o);
/* The core file to be reported; NULL = none. */
const char *options_core(const struct options *o);
/* Whether ptmem attaches to processes instead of starting one; and whether to several. */
bool options_attach(const struct options *o);
bool options_attach_many(const struct options *o);

#endif
