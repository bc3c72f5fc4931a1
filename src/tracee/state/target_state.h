/*
 * struct target: the state of all traced programs, with the functions of later layers for earlier
 * ones (hooks). Internal to src/tracee; the public interface is tracee/control/target.h.
 */
#ifndef PTMEM_TRACEE_STATE_TARGET_STATE_H
#define PTMEM_TRACEE_STATE_TARGET_STATE_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/types.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "tracee/state/thread.h"

struct target;
struct thread;

/* How system calls that map memory are watched; syscalls/syscalls.h. */
enum syscalls_way { SYSCALLS_NONE, SYSCALLS_FILTER, SYSCALLS_SITES };

/* Functions of later layers for earlier ones; target_new sets them. */
struct target_hooks {
	/* Handles a stop, or the end, of @tid. */
	void (*serve_stop)(struct target *t, pid_t tid, int status);
	/* @th is about to be resumed with a signal; NULL = nothing to do. */
	void (*before_signal)(struct target *t, struct thread *th);
	/* Whether @th must be resumed to its next system call; NULL = never. */
	bool (*stops_at_syscall)(const struct target *t, const struct thread *th);
	/* Handles a breakpoint at a system call instruction. */
	trap_fn *serve_site;
	/* The modules of @s may have changed; @th is stopped in it. */
	void (*update_modules)(struct target *t, struct address_space *s, struct thread *th);
	/* @th is at a breakpoint of ours, which may have changed its signal mask. */
	void (*restore_mask)(struct target *t, struct thread *th);
};

/* The program that ptmem started, or attached to first. */
struct first_process {
	pid_t pid;                       /* 0 = none yet */
	uint8_t refusal;                 /* enum attach_problem, of a started program */
	bool has_status;
	int status;                      /* its wait status */
};

/* Pending work of the event loop; control/target_run.c. */
struct loop_state {
	struct address_space *promote;   /* its probes are hot: promote them before the next stop */
	/* stop and resume all threads: how they are resumed has changed */
	bool must_restart;
	unsigned idle_us;                /* duration of the last idle sleep */
};

/* How the tracees are restored if ptmem dies; guard/guardian.c. */
struct target_recovery {
	struct journal *journals;        /* JOURNALS of them; NULL = none */
	struct guardian *guardian;       /* NULL = none */
	pid_t guardian_pid;              /* 0 = none */
	bool is_guardian;                /* this process is one, cleaning up after a dead ptmem */
};

/* System calls that map memory; syscalls/syscalls.c. */
struct syscall_watch {
	enum syscalls_way way;
};

/* Why calls are not injected: a reason, which may end with a system call. */
struct seccomp_refusal {
	const char *reason;
	const char *call;                /* "" = none */
};

/* ptmem's own seccomp filters, which a program that it starts inherits; inject/seccomp.h. */
struct inherited_filters {
	int count;                       /* 0 also if it attached; -1 = unknown */
	struct seccomp_refusal refusal;  /* reason NULL: they allow what is injected */
};

/* A target; its public interface is target.h. */
struct target {
	struct target_options options;
	struct registry *registry;       /* the caller's */
	struct event_sink sink;
	struct target_hooks hooks;
	const struct arch *arch;
	struct tick_clock ticks;         /* dates what pads record */
	struct thread_table threads;
	VEC(struct process *) processes;
	struct pending_stops pending;
	struct target_stats stats;
	struct first_process first;
	struct loop_state loop;
	struct target_recovery recovery;
	struct syscall_watch syscalls;
	struct inherited_filters inherited;
	struct pad_globals *pads;        /* pads/pad_state.h; never NULL */
	struct control *control;         /* control/control.h; never NULL */
	bool is_stopping;                /* or stopped: threads are held at their next stop */
	uint64_t stopped_since_ns;       /* by world_stop; 0 = not */
	bool is_leaving;                 /* a thread whose vfork ends stays halted */
	uint64_t now_ns;                 /* time of the stop being handled */
	bool is_abandoned;               /* after a failed check: nothing is counted any more */
	/* nothing is profiled any more; the filter still needs a tracer */
	bool is_released;
};

#endif
