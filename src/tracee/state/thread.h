/*
 * Threads and processes of a target, and the state of each: the watched calls that a thread is in,
 * the copied top of its stack, stops that were consumed from the kernel but not handled yet.
 */
#ifndef PTMEM_TRACEE_STATE_THREAD_H
#define PTMEM_TRACEE_STATE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/probe.h"

/*
 * The watched calls that a thread is in, and the remaining state of those that it has just left:
 * exceptions in flight, an operator delete. Maintained by calls/.
 */

/* A watched call that has been entered and has not returned. */
struct call {
	const struct probe *probe;
	/* stack pointer at the function's entry */
	taddr_t sp;
	taddr_t return_at;          /* where the stub's call put its return address */
	taddr_t stub_return;        /* that return address */
	uint64_t link;              /* the return address, if a call leaves it in arch.link */
	struct probe_call args;
	/* callee-saved registers at the entry, as arch.dwarf_saved */
	uint64_t saved[RULE_SAVED_REGS];
	/* an exception is being created or thrown inside: calls there count */
	bool is_suspended;
	uint8_t guess;              /* as in struct probe_site */
	/* the exception in flight that was thrown inside; 0 = none */
	taddr_t raised;
	/* of the pad call that a signal interrupted; 0 = none */
	taddr_t outer_return_at, outer_return_to;
	uint32_t outer_kind, outer_dirty;
};

/* A call in which an exception was created, or which one has left; calls.c. */
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

/* A call of a function of --within or --label that has not returned, as far as is known. */
struct within_call {
	const struct custom_probe *function;
	taddr_t entry;              /* the address of the function */
	taddr_t sp, return_pc;      /* at its entry; sp points to the return address */
	uint64_t arg[6];
};

/* All zeros: a thread outside all watched calls. */
struct call_state {
	/* outermost first; more than one only by signal handlers */
	VEC(struct call) list;
	VEC(struct thrown) thrown;  /* until the exception is caught */
	struct deleted deleted;
	bool has_deleted;
	bool had_signal;            /* a signal arrived since the outermost call was entered */
	VEC(struct within_call) within; /* outermost first; of each function one */
};

/* Bytes of a stack: farther away is another one, as of a coroutine, or of a signal handler. */
#define WITHIN_STACK (UINT64_C(64) << 20)

/* Whether a thread with the stack pointer @sp, at an entry, has left a call entered at @call_sp. */
static inline bool within_is_above(taddr_t call_sp, taddr_t sp)
{
	return sp >= call_sp && sp - call_sp < WITHIN_STACK;
}

/* The thread runs another program: it is outside all calls. */
void call_state_clear(struct call_state *c);

/*
 * The thread of @to is a fork of that of @from: it is inside the same calls, but for those of
 * --within, which are the parent's.
 */
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

/*
 * The copied part of a stopped thread's stack, and views of it for unwinders. A walk goes up the
 * stack, so memory after the copy is read ahead, in growing amounts.
 */

struct stack_view;
struct target;
struct thread;

struct stack_window {
	uint8_t *copy;              /* copy of the top of the stack */
	size_t size, capacity;
	taddr_t start;              /* address of the copy */
	/* bytes to copy next time: the depth that unwinders have needed so far */
	size_t want;
	/* other memory read during this stop; NULL = none yet */
	uint8_t *above;
	taddr_t above_start;
	size_t above_size;
};

/* The return address of @th at a function's entry, with @regs: 0 or -errno. */
int thread_read_return(const struct target *t, const struct thread *th,
		       const struct arch_regs *regs, taddr_t *pc_out);

/*
 * The view of @th at a function's entry, with @regs; @sp is the stack pointer there: frame 0 is
 * left out. Valid until the next view of @th.
 */
void stack_window_at_entry(struct target *t, struct thread *th, const struct arch_regs *regs,
			   taddr_t sp, struct stack_view *view);
/* The view of a thread stopped anywhere: its current registers, nothing left out. */
void stack_window_at_stop(struct target *t, struct thread *th, const struct arch_regs *regs,
			  struct stack_view *view);

/*
 * The threads of a target: found by thread id, visited in the order in which they were added.
 *
 * A loop holds a cursor instead of an index, so that any thread, also the current one, may be
 * removed and others added while it runs. It visits each thread that stays in the table exactly
 * once, and those added meanwhile. (Handling one stop may end or start any thread.)
 */

struct address_space;

/* Private to thread.c. All zeros: an empty table. It does not own the threads. */
struct thread_table {
	HASH(struct thread *) by_tid;
	VEC(struct thread *) order; /* ascending by serial number */
	uint64_t last_serial;
};

/* Position of a loop; all zeros = before the first thread. */
struct thread_cursor {
	uint64_t serial;            /* of the current thread, which may be removed; 0 = none */
	size_t hint;                /* its last index in order */
};

void thread_table_deinit(struct thread_table *table);
/* Advances @at and returns the next thread; NULL at the end. */
struct thread *thread_table_next(const struct thread_table *table, struct thread_cursor *at);
/* The same for threads of the address space @s only. */
struct thread *thread_table_next_in(const struct thread_table *table, struct thread_cursor *at,
				    const struct address_space *s);

/*
 * Stops that were consumed from the kernel but not handled yet.
 *
 *	unannounced  first stops of threads whose parent's fork or clone event is still to come
 *	deferred     ends of threads, seen while these worked for ptmem
 */

/* All zeros: empty. Private to thread.c, except for loops over unannounced. */
struct pending_stops {
	VEC(struct wait_report) unannounced;
	VEC(struct wait_report) deferred;
};

void pending_stops_deinit(struct pending_stops *ps);

void pending_stops_add_unannounced(struct pending_stops *ps, pid_t tid, int status);
/* Removes the entry of @tid; false if there is none. */
bool pending_stops_take_unannounced(struct pending_stops *ps, pid_t tid, int *status_out);

/* Removes one of the deferred stops; false if there is none. */
bool pending_stops_take_deferred(struct pending_stops *ps, struct wait_report *out);
/* Whether the exit stop of @tid is among them. */
bool pending_stops_has_exit(const struct pending_stops *ps, pid_t tid);

/*
 * State of a thread:
 *
 *	state     means                           left by
 *	NEW       announced, first stop not seen   its first stop
 *	RUNNING   resumed                      any stop
 *	STOPPED   at a stop that was handled        resume, or held while the world stops
 *	LISTENING at the stop that reports a       SIGCONT, interrupt
 *	          group stop
 */

enum thread_state { THREAD_NEW, THREAD_RUNNING, THREAD_STOPPED, THREAD_LISTENING };

struct process {
	pid_t pid;
	struct address_space *space;
	uint32_t threads;           /* alive and traced */
	bool is_vfork_child;        /* shares the space only until exec or exit */
	bool is_started;            /* by us: our child */
	bool is_forked;             /* by a followed process */
	bool is_left;               /* a left child (left_children.h), or forked by one */
	bool is_execing;            /* its first instruction is still to come */
	bool is_first_image;        /* runs the program that ptmem was started with */
	bool is_attaching;          /* its threads are being seized; nothing is installed yet */
	bool awaits_start;          /* guard and watch its image at its first instruction */
	struct roots *exit_roots;   /* control/roots.c; NULL = none yet */
};

/* The stack of a thread: from its first stack pointer (end) down to start. */
struct stack_range {
	taddr_t start, end;
};

/* A thread from its vfork event to the next stop: it runs no code of the program. */
struct vfork_wait {
	bool is_waiting;
	struct arch_regs regs;      /* saved while it waits, since they cannot be read then */
};

/*
 * The system call in which a thread waited when it was interrupted, where the kernel hides restarts
 * (struct arch); pc 0 = it was not waiting in one.
 */
struct waiting_call {
	taddr_t pc, sp;
	long number;
	uint64_t first;             /* its first argument */
};

struct thread {
	pid_t tid;
	uint64_t serial;            /* 1, 2, ...: in order of appearance */
	struct process *process;
	enum thread_state state;
	bool hit_trap;              /* a breakpoint's SIGTRAP arrived while it made a call for us */
	int held_signal;            /* signal to be delivered at the next resume */
	bool is_held;               /* stopped until all threads are resumed */
	bool is_group_stopped;      /* when last checked, whatever our work changed since */
	/* is held at its next stop, though the others continue: ptmem is about to detach from it */
	bool stays_held;
	bool was_interrupted;       /* an interrupt was sent and its stop has not been seen */
	/* with which it was sent to repeat a system call, which it may have entered; NULL = none */
	struct arch_regs *repeated;
	bool wants_sample;          /* report its stack pointer at the next interrupt stop */
	bool is_exiting;            /* past its exit stop */
	bool is_new;                /* has not run yet */
	struct call_state calls;    /* watched calls that it is in */
	struct stack_window window; /* on its stack */
	struct stack_range own_stack; /* for a sink with stack_new; 0 = unknown */
	struct pad_thread *pads;    /* pads/pads.h; NULL = none yet */
	struct syscall_state *syscall; /* syscalls/mapping.h; NULL = none yet */
	struct vfork_wait vfork;
	struct waiting_call waiting;
	/* for a final scan: registers when it was last resumed; NULL = it was not */
	struct arch_regs *resumed;
};

/*
 * Loops over all threads of @t; @th, a variable of the caller, is the current one. Any thread may
 * be removed in the loop, and threads may be added.
 */
#define for_each_thread(t, th)                         \
	for (struct thread_cursor cursor_ = {0};       \
	     ((th) = thread_table_next(&(t)->threads, &cursor_));)
/* The same for threads of the address space @s only. */
#define for_each_thread_in(t, s, th)                   \
	for (struct thread_cursor cursor_ = {0};       \
	     ((th) = thread_table_next_in(&(t)->threads, &cursor_, (s)));)

/* How many there are. */
uint32_t thread_count(const struct target *t);
struct thread *thread_find(const struct target *t, pid_t tid);
struct thread *thread_add(struct target *t, pid_t tid, struct process *p);
void thread_remove(struct target *t, struct thread *th);

struct process *process_find(const struct target *t, pid_t pid);
struct process *process_add(struct target *t, pid_t pid, struct address_space *space);
/* Makes another living process of the space of @leaving the one for accessing memory. */
void process_move_reader(struct target *t, const struct process *leaving);
/* Removes @p from the table. */
void process_unlink(struct target *t, struct process *p);
/* Whether a process still uses the space with number @id. */
bool space_exists(const struct target *t, uint32_t id);

/*
 * A stopped thread of @s that may make system calls for us: not at its vfork event, and preferably
 * not in a group stop. NULL if there is none.
 */
struct thread *thread_pick(struct target *t, struct address_space *s);
/* @th is at a stop of @kind. */
void thread_note_stop(struct thread *th, enum stop_kind kind);
/* Whether @th will be held at its next stop. */
bool thread_must_halt(const struct target *t, const struct thread *th);
/* Resumes @th with @sig, or holds it while all threads are stopped. */
void thread_resume(struct target *t, struct thread *th, int sig);
/* Resumes @th with @sig in any case. */
void thread_run(struct target *t, struct thread *th, int sig);
/* Stops @th, which runs: 0 or -errno. */
int thread_interrupt(const struct target *t, struct thread *th);
/*
 * The request for that: to the next system call's entry or exit if @to_syscall. For a final scan
 * @th stays at its exit stop, to which the end of its process may have moved it. -errno.
 */
int thread_continue(const struct target *t, struct thread *th, int sig, bool to_syscall);

/*
 * @th ended, or is about to, during work for us: the next stops_serve_next reports and removes it,
 * since callers up the stack still use it, its process and its space.
 */
void thread_end_later(struct target *t, struct thread *th, int status);
/*
 * Consumes the stop of @th, which stays stopped, so that the next wait does not find it. Another
 * thread's execve may have killed @th since: then this finds its end, which is handled later.
 */
void thread_consume_stop(struct target *t, struct thread *th);
/*
 * Waits up to 5 ms for a change of any child. False: @th has died meanwhile; it is reported
 * later.
 */
bool thread_wait_for_news(struct thread *th);

/* Single steps that outlive the ptmem that started them. */

/*
 * In a guardian: whether @th stopped for a SIGTRAP that ends the last single step of the dead
 * ptmem, and must be hidden from the program. si_code is TRAP_TRACE without the program's own step
 * flag; or, if the step led into a signal handler, the number of the signal (ptrace_notify).
 */
bool step_is_left_over(const struct target *t, const struct thread *th);

#endif
