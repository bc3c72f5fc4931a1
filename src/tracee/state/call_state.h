/*
 * The watched calls that a thread is in, and the remaining state of those that it has just left:
 * exceptions in flight, an operator delete. Maintained by calls/.
 */
#ifndef PTMEM_TRACEE_STATE_CALL_STATE_H
#define PTMEM_TRACEE_STATE_CALL_STATE_H

#include "base/types.h"
#include "base/vec.h"
#include "tracee/state/probe.h"

/* A watched call that has been entered and has not returned. */
struct call {
	const struct probe *probe;
	/* stack pointer at the function's entry, which points to the return address */
	taddr_t sp;
	taddr_t return_at;          /* where the stub's call pushed its return address */
	taddr_t stub_return;        /* that return address */
	struct probe_call args;
	uint64_t saved[6];          /* callee-saved registers at the entry, as arch.dwarf_saved */
	/* an exception is being created or thrown inside: calls there count */
	bool is_suspended;
	/* the exception in flight that was thrown inside; 0 = none */
	taddr_t raised;
	/* of the pad call that a signal interrupted; 0 = none */
	taddr_t outer_return_at, outer_return_to;
	uint32_t outer_kind, outer_dirty;
};

/* A call in which an exception was created, or which one has left; exceptions.c. */
struct thrown {
	const struct probe *probe;
	struct probe_call args;
	taddr_t sp;                 /* at the function's entry */
	/* a pad call's original value, restored if the exception stays inside; else 0 */
	taddr_t return_to;
	taddr_t raised;             /* as in struct call */
};

/* Operator delete was entered: its free belongs to the same event. */
struct deleted {
	taddr_t trap, block;        /* the breakpoint, and the block */
	/* the stack pointer there, and the return address */
	taddr_t sp, return_pc;
};

/* All zeros: a thread outside all watched calls. */
struct call_state {
	/* outermost first; more than one only by signal handlers */
	VEC(struct call) list;
	VEC(struct thrown) thrown;  /* until the exception is caught */
	struct deleted deleted;
	bool has_deleted;
	bool had_signal;            /* a signal arrived since the outermost call was entered */
};

void call_state_deinit(struct call_state *c);
/* The thread runs another program: it is outside all calls. */
void call_state_clear(struct call_state *c);

/* The thread of @to is a fork of that of @from: it is inside the same calls. */
void call_state_copy(struct call_state *to, const struct call_state *from);
/* Whether the thread is inside a call that was entered at or above @sp. */
bool call_state_reaches(const struct call_state *c, taddr_t sp);

/* The innermost call that has not returned, or NULL. */
const struct call *call_state_innermost(const struct call_state *c);
/* A signal is about to be delivered to the thread. */
void call_state_note_signal(struct call_state *c);

/* The last pad call entered at @sp, among those in which exceptions were created; or NULL. */
struct thrown *call_state_find_thrown(const struct call_state *c, taddr_t sp);
/*
 * An exception is created in the pad call @thrown. The previous one has returned unless it
 * threw.
 */
void call_state_add_thrown(struct call_state *c, const struct thrown *thrown);
/* Whether an exception other than @caught is in flight. */
bool call_state_has_raised(const struct call_state *c, taddr_t caught);

#endif
