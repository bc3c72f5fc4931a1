/*
 * One profiled address space from event to file: a session connects the stages.
 *
 *	heap event -> unwind -> call tree node -> profile -> report -> massif file
 *
 * A session belongs to an address space (its user pointer) and to the run (run.h), which has all
 * shared data: options, names, the filter, all modules.
 *
 * session_life.c makes and ends it; session_sink.c feeds it from a target, session_replay.c from a
 * file; session_output.c writes its files.
 */
#ifndef PTMEM_SESSION_SESSION_H
#define PTMEM_SESSION_SESSION_H

#include "base/types.h"
#include "profile/events.h"
#include "profile/flows.h"
#include "profile/profile.h"
#include "profile/stacks.h"
#include "session/heap_sample.h"
#include "session/inspect/cold_watch.h"
#include "session/inspect/last_inspection.h"
#include "session/memory_source.h"
#include "session/out.h"
#include "session/run.h"
#include "session/within.h"
#include "tracee/control/target.h"
#include "tracee/state/event_sink.h"
#include "unwind/unwind.h"

/* The nodes of a thread's last stack, outermost first. */
struct path {
	uint32_t *node;
	size_t count, capacity;
};

/* Counts stacks of events. */
struct stack_counts {
	uint64_t taken, complete;
	uint64_t truncated;        /* for page faults, if the kernel copied only a part */
	uint64_t seen;             /* with --verify-stacks */
	uint64_t verified, differing; /* with a second result; with another one */
	uint64_t second_frames;    /* frames of verified stacks, compared with libunwind's */
	uint64_t ends[UNWIND_END_COUNT];
};

/* Watched functions and markers, by kind of probe. */
struct probe_counts {
	uint32_t jumps, breakpoints;
	uint32_t marker_jumps, marker_breakpoints;
};

/* The program of a session. */
struct session_image {
	unsigned number;           /* 1, 2, ...: profiled programs that this pid executed */
	uint32_t serial;           /* number of the program in this run; a fork has its parent's */
	bool is_abandoned;         /* a fork of a program that was superseded */
	uint32_t program;          /* id of the module that is its executable; 0 = unknown */
	bool has_next;             /* the process executed another program, which is profiled */
	/* it did, and that one's profile takes the place of this one: only a line tells of it */
	bool is_superseded;
	bool has_executed;         /* another program: the end of this one */
	bool was_replaced;         /* replaced by a program that is not followed or profiled */
	char *successor;           /* the path of that; NULL = /proc still has it */
	char *successor_problem;   /* why it is not profiled; NULL = not known */
	char *passed;              /* such programs so far, "gosu, tini"; NULL = none */
	unsigned passed_count;
	/* ptmem attached to the program: it ran already, and has not executed another one since */
	bool was_attached;
	bool is_own;               /* began with exec or attach; a fork shares its parent's data */
	bool has_python;           /* an interpreter of Python is mapped */
	bool is_free_threaded;     /* its threads run at once: it has no allocator but its own */
	/* which takes small objects from malloc: ptmem's doing; its environment says so, or is
	 * unknown */
	bool was_given_malloc, has_python_malloc;
	bool ignores_variables;    /* of Python: -E or -I */
	bool has_pymalloc;         /* the functions of its own allocator are watched */
	/* one of an allocator of the program's own (--probe), or of Python's, resizes blocks */
	bool has_own_realloc;
	const struct runtime_system *runtime; /* of a language; NULL = none is known by its name */
	bool is_emulator;          /* what is profiled runs another program's code */
};

struct leaf_calls {
	uint64_t calls, bytes;
};

/* What a forked child's parent had called before, which is in the child's profile, too. */
struct session_inherited {
	struct profile_totals totals;
	struct call_totals calls; /* with samples: of all calls */
	VEC(struct leaf_calls) leaf; /* by number */
};

/* The process of a session, as names of files and messages show it. */
struct session_process {
	uint32_t pid;
	bool has_reused_pid;       /* a process of this run that has ended had the same pid */
	unsigned file_number;      /* number in its file names; 0 = not needed yet */
	bool has_ended;            /* out_end was called: another process may have this pid */
	char *command;             /* for cmd: */
	/* where it ran when ptmem attached to it; NULL = unknown, or ptmem started it */
	char *name, *cgroup;
	char *desc;                /* for desc: of the heap's profile */
	uint64_t start_ns, end_ns;
	int exit_status;           /* wait status once it has ended; -1 = unknown, or it has not */
	bool was_left;             /* ptmem detached from it */
	/* of a forked child; otherwise zero */
	struct session_inherited inherited;
};

#define OWN_TYPES_MAX 32u /* tcmalloc 2.18 has 11 classes */

/* What is made of the heap's events. */
struct session_heap {
	struct profile *profile;   /* of the heap, or of the pages (--pages-as-heap) */
	struct heap_sample sample; /* selects the events that are samples */
	struct flows *flows;       /* for an xtree; NULL = none is wanted */
	struct releases *releases; /* for --free-stacks; NULL = off */
	/* frames of the types of earlier blocks that an allocator made for itself */
	uint32_t own_type[OWN_TYPES_MAX];
	size_t own_types;
};

/* The unwinder, and what it found. */
struct session_stacks {
	struct unwind *unwind;
	struct java_frames *java;  /* NULL = it has no virtual machine of Java */
	VEC(struct path) paths;    /* by slot */
	struct virtual_stacks *virtual; /* owned; NULL = no interpreter is known */
	struct v8_stacks *v8;      /* owned; NULL = it has no V8 */
	uint32_t renamed;          /* how often the names of generated code have changed */
	struct stack_counts counts;
};

/* The file of its events. */
struct session_events {
	struct events_writer *writer; /* NULL = none */
	FILE *stream;              /* destination of the session's own events; NULL = the run's */
	char *path;                /* of that */
	uint64_t last_ns;          /* time of the last event: the next one is no earlier */
	struct touched_blocks *touched; /* touched_blocks.h; NULL = none */
};

/* Its calls, counted as memusage does. */
struct session_memusage {
	struct memusage *counts;   /* NULL = its calls are not counted */
	struct memusage_data *data; /* memusage_run.c: destination of each call; NULL = none */
	char *data_path;
};

/* What is known at its end, to be reported. */
struct session_end {
	struct probe_counts probes;
	struct space_pauses pauses;
	uint64_t anonymous_bytes;  /* resident at their peak, about; 0 = unknown */
	uint64_t peak_resident;    /* bytes; 0 = unknown */
	uint64_t time_error_ns;    /* pads_time_error */
	uint8_t guess;             /* enum probe_guess of its malloc; GUESS_NONE: it has a name */
	struct final_scan *final_scan; /* NULL = none */
	struct ahead_copy *ahead;  /* copy_ahead.h; NULL = none */
	struct inspection *inspected; /* NULL = none */
	struct last_inspection inspection;
	struct session_cold cold;
	char *path[OUTPUTS][SOURCE_COUNT]; /* of its files whose names are decided (out_name) */
	bool is_draft; /* what is written now will be written again, with all names */
};

struct session {
	struct run *run;
	struct address_space *space; /* NULL in a replay and after the end */
	struct session_process process;
	struct session_image image;
	struct session_heap heap;
	/* the traced sources; the heap's profile is the one above */
	struct source source[SOURCE_COUNT];
	struct session_stacks stacks;
	struct code_names *code;   /* names of generated code; NULL = there was none yet */
	struct session_events events;
	struct session_memusage memusage;
	struct labels *labels;     /* of threads (labels.h); NULL = none so far */
	struct within *within;     /* calls of functions (within.h); NULL = none so far */
	struct stacks *stack_use;  /* --stacks=yes: stack use of its threads; NULL = off */
	struct recording_run *recording; /* NULL = nothing is recorded yet */
	struct session_end end;
};

/* The module at @pc, even if it was just loaded; or NULL. */
const struct module *session_module(struct session *s, taddr_t pc);
/* The heap's profile for writers, valid as long as @s. */
struct report session_report(struct session *s);

/*
 * Whether @pc is in an operator new that sampling does not watch: its caller counts as the
 * allocating function.
 */
bool session_hides(const struct session *s, taddr_t pc);
/* The node of @parent's callee at @pc, which can be several frames, of inlined functions. */
uint32_t session_child(struct session *s, struct profile *p, uint32_t parent, taddr_t pc);
/* The frame in @p's call tree of the function whose name has the key @key (symbols_name). */
uint32_t session_named_frame(struct session *s, struct profile *p, uint64_t key);
/* The node of the stack @view in @p's call tree. */
uint32_t session_stack_node(struct session *s, struct profile *p, const struct stack_view *view);
/* --verify-stacks: whether the next stack is to be compared. */
bool session_verifies(struct session *s);
/* A verified stack of @tid differs; returns whether to print how. */
bool session_stack_differs(struct session *s);

/* The command line, at most 100 characters, for messages. The caller frees it. */
char *session_title(const struct session *s);
/* The base name of the program's file, for messages. The caller frees it. */
char *session_program_name(const struct session *s);
/* Whether there is no other session in the run, and will be none: none waits for its end. */
bool session_is_alone(const struct session *s);
/* Whether @s prints no messages: a forked child with --child-silent-after-fork=yes. */
bool session_is_silent(const struct session *s);

/* The start and end of a session. */

struct address_space;
struct run;

/* A session of @pid without an address space, starting at @start_ns. Owned by the run until
 * session_free. */
struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns);
/* The session of @space, a forked child: inherits everything that @parent has counted so far. */
struct session *session_fork(struct session *parent, struct address_space *space);
/* Attaches @s to its address space and creates the unwinder. */
void session_bind(struct session *s, struct address_space *space);
/* Opens its event file if requested. @is_first: the first session of the run. */
void session_open_events(struct session *s, bool is_first);
void session_free(struct session *s);
/* Removes @s from the run's sessions. */
void session_unlist(struct session *s);
/* Ends the profile, writes its files and prints the summary. */
void session_finish(struct session *s, uint64_t now_ns);

/*
 * The stacks of threads: their ranges for memusage, their use for the profile (--stacks=yes,
 * doc/massif.md 2.10). Stack pointers come with events, and from samples.
 *
 *	a stack pointer -> struct stacks -> EVENT_STACK, where the sum changed -> profile
 *
 * A stack pointer that comes with an event of the heap counts before that event.
 */

/* For event_sink: a thread begins, or existed when the session began. */
void session_stacks_new(void *ctx, struct address_space *space,
			const struct thread_stack_info *info);
/* For event_sink: a thread has ended while others continue. */
void session_stacks_gone(void *ctx, struct address_space *space, pid_t tid);

/* @s begins, or is a forked child: no stacks are known. */
void session_stacks_init(struct session *s);
/* Updates the stacks with the stack pointer of @he, if it has one. */
void session_stacks_see(struct session *s, const struct heap_event *he);
/* A thread has ended: after session_stacks_gone, or with its process. */
void session_stacks_thread_exit(struct session *s, uint32_t thread);

/* The event sink of a run: creates, feeds and ends its sessions. */

/* @run is the ctx of the sink, and of @poll. */
void session_sink_init(struct event_sink *out, struct run *run, bool (*poll)(void *ctx));

/* --replay: profiles an event file instead of a target. */

/* Makes a profile from the events in @path and writes its files. 0, or -errno after a message. */
int session_replay(struct run *run, const char *path);

/* The end of a program, as event_sink.space_end. */

/* Ends the session of @space. */
void image_end(void *ctx, struct address_space *space, enum space_end why);

/*
 * The session of a program that another one has replaced by exec. Which of them is the result is
 * known only when the new one's profile begins, or when the process ends without that: until then
 * it is kept, with all its data, and no longer among the run's sessions.
 */

/* The profile of the program that @pid executed begins, and takes the place of the kept one. */
void former_image_supersede(struct run *run, pid_t pid);

/* For event_sink; @ctx is the run. */
void former_image_refused(void *ctx, struct address_space *space, const char *why);
/* What is kept for @pid is the result, unless it executes one more program. */
void former_image_process_left(void *ctx, pid_t pid, enum space_end why);

/*
 * Sessions of forked children that have ended, while their parent may still execute another
 * program, whose profile takes the place of its own: then the children of the former program, such
 * as the subshells of a wrapper script, are no result either. They are kept until the program of
 * the parent ends or is replaced, but not for long: the files of a server's workers are wanted when
 * these end.
 */

/* Finishes those that have waited long enough. Returns when the next one will have. */
uint64_t ended_forks_tick(struct run *run, uint64_t now_ns);

#endif
