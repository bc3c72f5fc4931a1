/*
 * struct target: all that is known of the traced programs. Internal to src/tracee; its public face
 * is tracee/control/target.h.
 */
#ifndef PTMEM_TRACEE_STATE_TARGET_INTERNAL_H
#define PTMEM_TRACEE_STATE_TARGET_INTERNAL_H

#include <sys/types.h>

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "tracee/os/instructions.h"
#include "tracee/state/pending_stops.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/target_stats.h"
#include "tracee/state/thread.h"

/* How system calls that map memory are watched; syscalls/syscalls.h. */
enum syscalls_way { SYSCALLS_NONE, SYSCALLS_FILTER, SYSCALLS_SITES };

/* What later layers do for earlier ones; target_new sets them. */
struct target_hooks {
	/* Serves a stop, or the end, of @tid. */
	void (*serve_stop)(struct target *t, pid_t tid, int status);
	/* @th is about to be resumed with a signal; NULL = nothing to do. */
	void (*before_signal)(struct target *t, struct thread *th);
	/* Whether @th must be resumed to its next system call; NULL = never. */
	bool (*stops_at_syscall)(const struct target *t, const struct thread *th);
	/* Serves a breakpoint at a system call instruction. */
	trap_fn *serve_site;
	/* The modules of @s may have changed; @th is stopped in it. */
	void (*update_modules)(struct target *t, struct address_space *s, struct thread *th);
	/* @th is stopped at a breakpoint of ours, which may have changed its signal mask. */
	void (*restore_mask)(struct target *t, struct thread *th);
};

/* The whole of a target; see target.h. */
struct target {
	struct target_options options;
	struct event_sink sink;
	struct target_hooks hooks;
	const struct arch *arch;
	struct thread_table threads;
	VEC(struct process *) processes;
	struct pending_stops pending;
	struct target_stats stats;
	pid_t first_pid;
	uint8_t refusal;                 /* enum attach_problem, of the started program */
	bool has_status;
	int status;
	bool is_stopping;                /* world stop: served threads are held */
	bool is_leaving;                 /* a thread whose vfork ends stays halted */
	uint64_t now_ns;                 /* time of the stop being served */
	struct instruction_counters counters; /* --time-unit=i */
	int fault_error;                 /* -errno of the first event for page faults that failed */
	struct faults *faults;           /* NULL = page faults are not watched */
	const struct pad_hooks *pad_hooks;
	struct pad_owner *pad_owner;     /* by which the kernel lets pads know that ptmem died */
	bool is_abandoned;               /* after a failed check: nothing is counted any more */
	uint32_t waiters;                /* threads that wait for room in a ring */
	/* threads shall stop and go on: how they are resumed has changed */
	bool must_restart;
	struct module *own_module;       /* of own_code.c; NULL = none yet */
	struct address_space *promote; /* its probes are hot: promote before the next stop */
	struct own_settings *own_settings; /* own_settings.c */
	struct job *job;                 /* job.c */
	struct timers *timers;           /* timers.c */
	struct journal *journals;        /* JOURNALS of them, of guardian.c; NULL = none are kept */
	struct guardian *guardian;       /* guardian.c; NULL = none */
	pid_t guardian_pid;              /* 0 = none */
	bool is_guardian;                /* this process is one, and cleans up after a dead ptmem */
	enum syscalls_way syscalls;      /* how calls that map are watched */
	/* seccomp filters of ptmem itself, which its children inherit */
	int own_filters;
	/* nothing is profiled any more; the filter still wants us */
	bool is_released;
	unsigned idle_us;                /* how long the last idle sleep was */
};

#endif
