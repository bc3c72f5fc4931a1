/*
 * One profiled address space from event to file: it joins the stages.
 *
 *	heap event -> unwind -> call tree node -> profile -> report -> massif file
 *
 * A session belongs to a space (its user pointer) and to the run (run.h), which holds
 * what all sessions share: options, names, the filter, the modules ever seen.
 *
 * session_sink.c feeds it from a target, session_replay.c from a file; session_output.c
 * writes its files.
 */
#ifndef PTMEM_SESSION_H
#define PTMEM_SESSION_H

#include "profile/events.h"
#include "profile/flows.h"
#include "profile/profile.h"
#include "run.h"
#include "sources.h"
#include "target/target.h"
#include "unwind/unwind.h"
#include "usage.h"

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
	/* what is traced; the heap's profile is the one above */
	struct source source[SOURCE_COUNT];
	struct flows *flows;       /* for an xtree; NULL = none is wanted */
	struct unwind *unwind;
	struct events_writer *events;
	struct memusage *memusage; /* NULL = its calls are not counted */
	struct stacks *stack_use;  /* --stacks=yes: what its threads use; NULL = not asked for */
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
	/* began with exec or attach; a fork's data are also its parent's */
	bool is_own_image;
	unsigned written_now;      /* files of session_write_so_far */
	/* growth.c: of a last look that is not reported yet; NULL = none */
	struct leak_look *look;
	struct top_table *top_table; /* of --top; NULL = none yet; owned */
	struct space_pauses pauses; /* known at its end */
};

/* A session of @pid without a space, which begins at @start_ns. The run's until session_free. */
struct session *session_new(struct run *run, uint32_t pid, uint64_t start_ns);
/* The session of @space, a forked child: it has all that @parent counted so far. */
struct session *session_fork(struct session *parent, struct space *space);
/* Joins @s to its space, whose modules it unwinds through. */
void session_bind(struct session *s, struct space *space);
void session_free(struct session *s);

/* Frame of @pc in @p's call tree. */
uint32_t session_frame(struct session *s, struct profile *p, taddr_t pc);
/* The node of the stack @view in @p's call tree; @innermost_offset is added to its first pc. */
uint32_t session_stack_node(struct session *s, struct profile *p, const struct stack_view *view,
			    taddr_t innermost_offset);

/* Whether nothing is said of @s: a forked child's, with --child-silent-after-fork=yes. */
bool session_is_silent(const struct session *s);
/* Ends the profile, writes its files and says on stderr what was seen. */
void session_finish(struct session *s, uint64_t now_ns);

#endif
