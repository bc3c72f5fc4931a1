/*
 * One profiled address space from event to file: it joins the stages.
 *
 *	heap event -> unwind -> call tree node -> profile -> report -> massif file
 *
 * A session belongs to a space (its user pointer) and to the run, which holds
 * what all sessions share: options, names, the filter, the modules ever seen.
 */
#ifndef PTMEM_SESSION_H
#define PTMEM_SESSION_H

#include "options.h"
#include "output/writer.h"
#include "profile/events.h"
#include "profile/flows.h"
#include "profile/profile.h"
#include "sources.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"
#include "target/target.h"
#include "unwind/unwind.h"
#include "usage.h"

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

/* The nodes along a thread's last stack, outermost first. */
struct path {
	uint32_t *node;
	size_t count, capacity;
};

struct session {
	struct run *run;
	struct space *space;       /* NULL in a replay and after the end */
	uint32_t pid;
	char *command;             /* for cmd: */
	struct profile *profile;   /* of the heap, or of the pages (--pages-as-heap) */
	struct source source[SOURCE_COUNT]; /* what is traced; the heap's profile is the one above */
	struct flows *flows;       /* for an xtree; NULL = none is wanted */
	struct unwind *unwind;
	struct events_writer *events;
	struct memusage *memusage; /* NULL = its calls are not counted */
	uint64_t start_ns, end_ns;
	VEC(struct path) paths;    /* by slot of the ring */
	uint64_t verified, differing; /* stacks sent both ways, and not the same */
	uint64_t stacks, complete_stacks;
	uint32_t jumps, breakpoints; /* watched functions at the end, by how they are caught */
	uint32_t marker_jumps, marker_breakpoints; /* the same of markers in the text */
	uint64_t ends[UNWIND_END_COUNT];
	unsigned image;            /* 1, 2, ...: profiled programs that this pid executed */
	bool has_next_image;       /* the process executed another one, which is profiled */
	bool was_replaced;         /* by an image that is not followed */
	bool is_own_image;         /* began with exec or attach; a fork's data are also its parent's */
	unsigned written_now;      /* files of session_write_so_far */
	struct leak_look *look;    /* growth.c: of a last look that is not reported yet; NULL = none */
	struct top_table *top_table; /* of --top; NULL = none yet; owned */
	uint64_t attach_ns;        /* how long it stood to be attached */
	const char *last_file;     /* NULL = none written */
};

void run_init(struct run *run, struct options *options);
void run_deinit(struct run *run);
void run_add_module(struct run *run, struct module *m);

/* The module of id @id, or NULL. */
struct module *run_module(const struct run *run, uint32_t id);

/* The frames of @view, innermost first, in scratch memory that the next walk uses again. */
size_t session_walk(struct session *s, const struct stack_view *view, const taddr_t **pcs_out);
/* Frame of @pc in @p's call tree. */
uint32_t session_frame(struct session *s, struct profile *p, taddr_t pc);

/* The sink that feeds sessions from a target; ctx is the run. */
void session_fill_sink(struct target_sink *sink, struct run *run);

struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns);
void session_free(struct session *s);

/* Ends the profile, writes its file and says on stderr what was seen. */
void session_finish(struct session *s, uint64_t now_ns);

/* session_output.c: writes the profile, or the xtree, to @path. 0 or -errno. */
int session_write_massif(struct session *s, const char *path);
int session_write_xtree(struct session *s, const char *path, uint64_t now_ns);
/* The state at @now_ns as a file of one snapshot, SNAPSHOT_EMPTY or SNAPSHOT_DETAILED. */
int session_write_now(struct session *s, const char *path, enum snapshot_kind kind, uint64_t now_ns);
/* The file of --xtree-memory, at the end; says where it is. */
void session_finish_xtree(struct session *s, uint64_t now_ns);
/* Writes @r; @suffix: behind the expanded --massif-out-file, "" = none. 0 or -errno after a message. */
int session_put_massif(struct session *s, const struct report *r, const char *suffix, char **path_out);
/* Writes the profile so far, as a massif file of its own name; says in @message where, or why not. */
void session_write_so_far(struct session *s, char *message, size_t size);
/* What writers are given, valid as long as @s. */
struct report session_report(struct session *s);
/* The name of @s's file from @pattern, for @option ("--data"). With several processes asked for, a
 * pattern without %p and %n gets the pid before its extension. *path_out is the caller's; not 0 after a message. */
int session_file_name(struct session *s, const char *option, const char *pattern, char **path_out);
/* Expands @pattern for @pid; *path_out is the caller's. Says what is wrong with @option. */
int run_expand(struct run *run, const char *option, const char *pattern, uint32_t pid, char **path_out);

/* The lines on stderr; verbose statistics with --stats. */
void session_print_summary(const struct session *s, const char *path);

/* Whether the names of output files can be made; says why not. */
int session_check_patterns(const struct run *run);
/* Whether a file named by @pattern, of option @option, can be written where it shall stand; says why not. */
int run_check_file(struct run *run, const char *option, const char *pattern);
/* The same of all files that are written at the end. */
int session_check_out_files(struct run *run);

/* Runs a profile from an event file. 0, or -errno after a message. */
int session_replay(struct run *run, const char *path);

#endif
