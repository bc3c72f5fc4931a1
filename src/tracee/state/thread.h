/*
 * Threads and processes of a target, and the state of each.
 *
 * State of a thread:
 *
 *	state     means                           left by
 *	NEW       announced, first stop not seen   its first stop
 *	RUNNING   resumed                      any stop
 *	STOPPED   at a stop that was handled        resume, or held while the world stops
 *	LISTENING at the stop that reports a       SIGCONT, interrupt
 *	          group stop
 */
#ifndef PTMEM_TRACEE_STATE_THREAD_H
#define PTMEM_TRACEE_STATE_THREAD_H

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/stop.h"
#include "tracee/state/call_state.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/thread_table.h"

struct address_space;
struct target;

enum thread_state { THREAD_NEW, THREAD_RUNNING, THREAD_STOPPED, THREAD_LISTENING };

struct process {
	pid_t pid;
	struct address_space *space;
	uint32_t threads;           /* alive and traced */
	bool is_vfork_child;        /* shares the space only until exec or exit */
	bool is_started;            /* by us: our child */
	bool is_forked;             /* by a followed process */
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
	bool wants_sample;          /* report its stack pointer at the next interrupt stop */
	bool is_exiting;            /* past its exit stop */
	bool is_new;                /* has not run yet */
	struct call_state calls;    /* watched calls that it is in */
	struct stack_window window; /* on its stack */
	struct stack_range own_stack; /* for a sink with stack_new; 0 = unknown */
	struct pad_thread *pads;    /* pads/pad_thread.h; NULL = none yet */
	struct syscall_state *syscall; /* syscalls/syscall_state.h; NULL = none yet */
	struct vfork_wait vfork;
	/* for a final scan: registers when it was last resumed; NULL = it was not */
	struct arch_regs *resumed;
};

/*
 * Loops over all threads of @t; @th, a variable of the caller, is the current one. Any thread may
 * be removed in the loop, and threads may be added: thread_table.h.
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

#endif
