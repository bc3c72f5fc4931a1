/*
 * What calls of functions (--within) need of the heap: from the call to its return, in one thread;
 * and sections, parts of a run from an entry of one function to the next one of another.
 *
 *	allocations   allocations by the thread, reallocs among them
 *	allocated     bytes that these requested; a realloc adds its growth
 *	temporary     share of them that the thread releases before it allocates again
 *	peak          the most bytes that blocks allocated in the call have at the same time
 *	live-at-end   of these, those that are not released when the call returns
 *
 * A block that was there before counts with what a realloc in the call makes it larger. What other
 * threads allocate does not count; what they release does. The outermost call of a function in a
 * thread counts. A call that is left by longjmp or an exception ends at the next event of its
 * thread further up the stack; one that never returns, with its thread or program.
 *
 * In a section all threads count; temporary is not measured. One that does not end does not count,
 * and while it lasts, further entries of its first function have no effect.
 */
#ifndef PTMEM_SESSION_WITHIN_H
#define PTMEM_SESSION_WITHIN_H

#include <sys/types.h>

#include "base/alloc.h"
#include "output/limit.h"
#include "profile/event.h"

struct address_space;
struct custom_probe;
struct session;
struct within_call;

/* What a stack has of a metric; node of the call tree. */
struct within_amount {
	uint32_t node;
	uint64_t amount;
};

/* The call that needs most of a metric. */
struct within_worst {
	double value;
	uint64_t number;          /* of the call, from 1 */
	VEC(struct within_amount) amount; /* of the metric, by stack; owned */
};

/* From an entry of @from to one of @to, in any thread; they may be one function. */
struct within_section {
	const struct custom_probe *from, *to;
};

struct within_sum {
	const struct custom_probe *function, *until; /* until: of a section; else NULL */
	uint64_t calls;
	struct within_worst worst[LIMIT_METRICS];
};

/* What the calls of a function, or sections, needed in all processes of a run. */
struct within_total {
	const struct custom_probe *function, *until;
	uint64_t calls;
	size_t processes;         /* with a call */
	struct {
		double value;
		uint64_t number;  /* of the call of process pid that needed most */
		uint32_t pid;
	} most[LIMIT_METRICS];
};

typedef VEC(struct within_total) within_totals;

struct within;

/* For event_sink. */
void session_within_begin(void *ctx, struct address_space *space, pid_t tid,
			  const struct within_call *call);
void session_within_end(void *ctx, struct address_space *space, pid_t tid,
			const struct custom_probe *function);
/* Whether a call is in progress, so that each event must be seen. */
bool within_is_on(const struct session *s);
/* @ev, of the heap, before the profile counts it. */
void within_event(struct session *s, const struct event *ev);
/* Calls of @thread end with it. */
void within_thread_exit(struct session *s, uint32_t thread);
/* All calls end. */
void within_finish(struct session *s);
/* The calls of @function, or with @until the sections; NULL: there was none. */
const struct within_sum *within_find(const struct session *s, const struct custom_probe *function,
				     const struct custom_probe *until);
/* Adds the calls in @s to @totals. */
void within_add(const struct session *s, within_totals *totals);
/* Says what the calls of each function needed. */
void within_print(const within_totals *totals);
/* Puts it into the recording of @s, for limits of calls that ptmem-report checks. */
void within_record(struct session *s);
void within_free(struct session *s);

#endif
