/*
 * The watched calls that a thread is inside of, and what is left of those that it has just left:
 * exceptions that are on their way, an operator delete. Filled by calls/.
 */
#ifndef PTMEM_TRACEE_STATE_CALL_STATE_H
#define PTMEM_TRACEE_STATE_CALL_STATE_H

#include "base/types.h"
#include "base/vec.h"
#include "tracee/state/probe.h"

/* A watched call that has been entered and has not returned. */
struct call {
	const struct probe *probe;
	/* at the function's entry; the caller's return address is there */
	taddr_t sp;
	taddr_t return_at;          /* where the stub's call pushed its return address */
	taddr_t stub_return;        /* that address */
	struct probe_call args;
	uint64_t saved[6];          /* callee-saved registers at the entry, by arch.dwarf_saved */
	/* an exception is being made or thrown inside: calls there are its own */
	bool is_suspended;
	/* the exception that was thrown inside, and is on its way; 0 = none */
	taddr_t raised;
	/* of the pad call that a signal interrupted; 0 = none */
	taddr_t outer_return_at, outer_return_to;
};

/* A call that an exception was made in, or has left; exceptions.c. */
struct thrown {
	const struct probe *probe;
	struct probe_call args;
	taddr_t sp;                 /* at the function's entry */
	/* of a pad's call: restored if the exception stays inside; else 0 */
	taddr_t return_to;
	taddr_t raised;             /* as in struct call */
};

/* Operator delete was entered: its free is the same event. */
struct deleted {
	taddr_t trap, block;        /* at which breakpoint, with what */
	/* where the stack pointer was, and the return address there */
	taddr_t sp, return_pc;
};

/* Zeroed memory is a thread outside all watched calls. */
struct call_state {
	/* outermost first; more than one only through signal handlers */
	VEC(struct call) list;
	VEC(struct thrown) thrown;  /* until the exception is caught */
	struct deleted deleted;
	bool has_deleted;
	bool had_signal;            /* a signal came since the outermost call was entered */
};

void call_state_deinit(struct call_state *c);
/* The thread runs another program: it is outside all calls. */
void call_state_clear(struct call_state *c);

/* The thread of @to is a fork of the one of @from: it is inside the same calls. */
void call_state_copy(struct call_state *to, const struct call_state *from);
/* Whether it is inside a call that was entered at or above @sp. */
bool call_state_reaches(const struct call_state *c, taddr_t sp);

/* The last call that was entered and has not returned, or NULL. */
const struct call *call_state_innermost(const struct call_state *c);
/* A signal is about to be delivered to the thread. */
void call_state_note_signal(struct call_state *c);

/* The last pad call that was entered at @sp, among those that exceptions were made in; or NULL. */
struct thrown *call_state_find_thrown(const struct call_state *c, taddr_t sp);
/* An exception is made in the pad call @thrown. The last one has returned if it threw nothing. */
void call_state_add_thrown(struct call_state *c, const struct thrown *thrown);
/* Whether an exception other than @caught is on its way. */
bool call_state_has_raised(const struct call_state *c, taddr_t caught);

#endif
