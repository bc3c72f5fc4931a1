/*
 * Threads and processes of a target, and where each stands. Internal to
 * src/target.
 *
 * State of a thread:
 *
 *	state     means                           leaves it by
 *	NEW       announced, first stop not seen   its first stop
 *	RUNNING   left to run                      any stop
 *	STOPPED   at a stop that was served        resume, or held while the world stops
 *	LISTENING in a group stop                  SIGCONT, interrupt
 *	GONE      reported its end                 -
 */
#ifndef PTMEM_TARGET_THREAD_H
#define PTMEM_TARGET_THREAD_H

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "target/probe.h"
#include "target/space.h"
#include "target/stop.h"
#include "target/target.h"

enum thread_state { THREAD_NEW, THREAD_RUNNING, THREAD_STOPPED, THREAD_LISTENING };

/* A watched call that has been entered and has not returned. */
struct call {
	const struct probe *probe;
	taddr_t sp;                 /* at the function's entry; the caller's return address stands there */
	taddr_t stub_return;        /* what the stub's call pushed at sp - 8 */
	struct probe_call args;
};

struct process {
	pid_t pid;
	struct space *space;
	uint32_t threads;           /* alive and traced */
	bool is_vfork_child;        /* shares the space only until exec or exit */
	bool is_started;            /* by us: our child */
	bool is_execing;            /* its first instruction is still to come */
};

struct thread {
	pid_t tid;
	struct process *process;
	enum thread_state state;
	int held_signal;            /* to be delivered at the next resume */
	bool is_held;               /* stopped, waits for the world to go on */
	bool was_interrupted;       /* an interrupt was asked for and has not been seen */
	bool is_exiting;            /* past its exit stop */
	bool had_signal;            /* got a signal since its outermost call was entered */
	VEC(struct call) calls;     /* outermost first; more than one only through signal handlers */
	taddr_t deleted_block;      /* operator delete was entered with it: its free is the same event */
	bool has_deleted;
	uint8_t *stack;             /* copy of the top of its stack */
	size_t stack_size, stack_capacity;
	size_t stack_want;          /* bytes to copy next time */
};

/* The whole of a target; see target.h. */
struct target {
	struct target_options options;
	struct target_sink sink;
	const struct arch *arch;
	VEC(struct thread *) threads;    /* hash table by tid, linear probing; NULL = free */
	uint32_t thread_count;
	VEC(struct process *) processes;
	struct { pid_t tid; int status; } *early; /* stops of threads not announced yet */
	size_t early_count, early_capacity;
	struct target_stats stats;
	pid_t first_pid;
	bool has_status;
	int status;
	bool is_stopping;                /* world stop: served threads are held */
	uint64_t now_ns;                 /* time of the stop being served */
	VEC(int) counters;               /* perf descriptors (--time-unit=i) */
};

struct thread *thread_find(const struct target *t, pid_t tid);
struct thread *thread_add(struct target *t, pid_t tid, struct process *p);
void thread_remove(struct target *t, struct thread *th);

struct process *process_find(const struct target *t, pid_t pid);
struct process *process_add(struct target *t, pid_t pid, struct space *space);
/* Takes @p out; its space ends with its last process. */
void process_remove(struct target *t, struct process *p, enum space_end why);

/* Lets @th go on with @sig, or holds it while the world is stopped. */
void thread_resume(struct target *t, struct thread *th, int sig);

/* loop.c */
/* Waits for one stop and serves it. -EINTR: a signal came; -ECHILD: nobody is left. */
int loop_step(struct target *t, bool no_wait);
void loop_serve(struct target *t, pid_t tid, int status);
/* Takes the stop of @tid, which stays stopped, out of what the next wait finds. */
void loop_consume_stop(pid_t tid);
/* Stops all threads of all processes, and lets them go on. */
void loop_stop_world(struct target *t);
void loop_start_world(struct target *t);

/* trap.c */
/* Serves a SIGTRAP of @th: true if it was one of ours (the thread may go on). */
bool trap_serve(struct target *t, struct thread *th);
/* Calls of @th whose frames are gone, or all of them at its end. */
void trap_drop_calls(struct target *t, struct thread *th, taddr_t sp);
void trap_fill_view(struct target *t, struct thread *th, const struct arch_regs *regs, taddr_t sp,
		    struct stack_view *view);

/* install.c */
/* Puts traps at all watched functions of all modules of @s; @th is stopped and may be used to
 * inject system calls (NULL: then only known areas are used). */
int install_probes(struct target *t, struct space *s, struct thread *th);
/* The same after the loader reported a change. */
void install_update(struct target *t, struct space *s, struct thread *th);
int install_start_trap(struct target *t, struct thread *th);
/* Takes everything out of @s; all its threads are stopped, @th one of them (or NULL). */
void install_remove(struct target *t, struct space *s, struct thread *th);

/* inject.c */
/* Runs a system call in stopped thread @th. *result_out: as the kernel returns it (-errno inside). */
int inject_syscall(struct target *t, struct thread *th, long nr, const uint64_t args[6], int64_t *result_out);


#endif
