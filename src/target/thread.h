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
 *	LISTENING at the stop that reports a       SIGCONT, interrupt
 *	          group stop
 */
#ifndef PTMEM_TARGET_THREAD_H
#define PTMEM_TARGET_THREAD_H

#include <signal.h>
#include <sys/resource.h>

#include "arch/arch.h"
#include "base/types.h"
#include "base/vec.h"
#include "target/pad_memory.h"
#include "target/probe.h"
#include "target/space.h"
#include "target/stop.h"
#include "target/syscalls.h"
#include "target/target.h"

enum thread_state { THREAD_NEW, THREAD_RUNNING, THREAD_STOPPED, THREAD_LISTENING };

/* A watched call that has been entered and has not returned. */
struct call {
	const struct probe *probe;
	taddr_t sp;                 /* at the function's entry; the caller's return address stands there */
	taddr_t return_at;          /* where the stub's call pushed its return address */
	taddr_t stub_return;        /* that address */
	struct probe_call args;
	uint64_t saved[6];          /* callee-saved registers at the entry, by arch.dwarf_saved */
	taddr_t outer_guard, outer_guard_pc; /* of the pad call that a signal interrupted; 0 = none */
};

struct process {
	pid_t pid;
	struct space *space;
	uint32_t threads;           /* alive and traced */
	bool is_vfork_child;        /* shares the space only until exec or exit */
	bool is_started;            /* by us: our child */
	bool is_execing;            /* its first instruction is still to come */
	bool is_first_image;        /* runs what ptmem was asked to start */
	bool is_attaching;          /* its threads are being seized; nothing was put into it yet */
	struct roots *last_roots;   /* registers of threads at its exit; NULL = none yet; owned */
};

/* A thread's own stack: from its first stack pointer (end) down to start. */
struct stack_range {
	taddr_t start, end;
};

struct thread {
	pid_t tid;
	struct process *process;
	enum thread_state state;
	bool met_trap;              /* a breakpoint's SIGTRAP came while it made a call for us */
	int held_signal;            /* to be delivered at the next resume */
	bool is_held;               /* stopped, waits for the world to go on */
	bool is_group_stopped;      /* was so when last asked, whatever it did for us since */
	bool stays;                 /* is held at its next stop, though the world goes on, to be left */
	bool was_interrupted;       /* an interrupt was asked for and has not been seen */
	bool wants_sample;          /* its stack pointer is to be told at the next interrupt stop */
	bool is_in_vfork;           /* from its event to the next stop; runs no code of the program */
	bool is_exiting;            /* past its exit stop */
	bool is_new;                /* has not run yet */
	bool had_signal;            /* got a signal since its outermost call was entered */
	VEC(struct call) calls;     /* outermost first; more than one only through signal handlers */
	/* operator delete was entered: its free is the same event */
	struct {
		taddr_t trap, block;     /* at which breakpoint, with what */
		taddr_t sp, return_pc;   /* where the stack pointer was, and the return address there */
	} deleted;
	bool has_deleted;
	uint8_t *stack;             /* copy of the top of its stack */
	size_t stack_size, stack_capacity;
	taddr_t stack_start;        /* where that copy begins */
	size_t stack_want;          /* bytes to copy next time: as deep as an unwinder looked so far */
	/* what else of its stack was read during this stop, FAR_SIZE at most; NULL = nothing ever was */
	uint8_t *far;
	taddr_t far_start;
	size_t far_size;
	uint64_t thread_pointer;    /* its key among the slots; 0 = has no slot */
	uint32_t slot;
	struct stack_range own_stack; /* for a sink with stack_new; 0 = not asked for */
	bool waits_for_room;        /* stopped at a full ring */
	struct syscall_state syscall;
	uint64_t waited_tail;       /* the ring's tail when it began to wait */
	uint32_t bounds_traps;      /* calls in a row from another stack than its slot's */
	struct arch_regs vfork_regs; /* while is_in_vfork, since it cannot be asked for them */
};

/* A stop that is still to be served; among t->late one that was consumed. */
struct late_stop {
	pid_t tid;
	int status;
};

/* What ptmem changes for itself and gives back to the program. */
struct signal_state {
	sigset_t mask;
	struct sigaction child;
};

/* The guardian process and what it shares with ptmem; guard.h. */
struct guard {
	struct guard_record *record;     /* GUARD_SPACES of them; NULL = no guardian */
	int fd;                          /* socket to it */
	pid_t pid;
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
	VEC(struct late_stop) late;  /* ends met while a thread worked for us, to be served by the loop */
	struct target_stats stats;
	pid_t first_pid;
	enum attach_problem refusal;     /* of the started program */
	bool has_status;
	int status;
	bool is_stopping;                /* world stop: served threads are held */
	bool is_leaving;                 /* who comes out of vfork stays halted */
	uint64_t now_ns;                 /* time of the stop being served */
	VEC(int) counters;               /* perf descriptors (--time-unit=i) */
	int fault_error;                 /* -errno of the first event for page faults that failed */
	struct faults *faults;           /* NULL = page faults are not watched */
	struct pad_owner pad_owner;      /* by which the kernel tells pads that ptmem died */
	VEC(taddr_t) stack_words;        /* scratch: words on stacks that point into text */
	bool is_abandoned;               /* after a failed check: nothing is counted any more */
	uint32_t waiters;                /* threads that wait for room in a ring */
	bool must_restart;               /* threads shall stop and go on: how they are resumed has changed */
	struct space *promote;           /* its probes are hot: promote before the next stop */
	struct signal_state signals;
	struct rlimit files;             /* how many ptmem could open at first; rlim_max 0 = unknown */
	struct guard guard;
	bool is_guardian;                /* cleans up after a dead ptmem */
	enum syscalls_way syscalls;      /* how calls that map are watched */
	int own_filters;                 /* seccomp filters of ptmem itself, which its children inherit */
	bool is_released;                /* nothing is profiled any more; the filter still wants us */
	unsigned idle_us;                /* how long the last idle sleep was */
	uint64_t next_tick_ns;           /* when the sink's tick, or a sample of the threads, is due */
	uint64_t next_sink_ns, next_sample_ns;
};

struct thread *thread_find(const struct target *t, pid_t tid);
struct thread *thread_add(struct target *t, pid_t tid, struct process *p);
void thread_remove(struct target *t, struct thread *th);
/* @th does not wait for room in a ring any more, if it did. */
void thread_wait_no_more(struct target *t, struct thread *th);

struct process *process_find(const struct target *t, pid_t pid);
struct process *process_add(struct target *t, pid_t pid, struct space *space);
/* @p has no space any more; it ends with its last process. */
void process_leave_space(struct target *t, struct process *p, enum space_end why);
/* Takes @p out, and out of its space. */
void process_remove(struct target *t, struct process *p, enum space_end why);

/*
 * A stopped thread of @s that may make system calls for us: not at the event of its vfork, and not in
 * a group stop, if there is another. NULL if there is none.
 */
struct thread *thread_pick(struct target *t, struct space *s);
/* @th stands at a stop of @kind. */
void thread_note_stop(struct thread *th, enum stop_kind kind);
/* Whether @th, at its next stop, is held. */
bool thread_must_halt(const struct target *t, const struct thread *th);
/* Lets @th go on with @sig, or holds it while the world is stopped. */
void thread_resume(struct target *t, struct thread *th, int sig);
/* Lets @th go on with @sig in any case. */
void thread_run(struct target *t, struct thread *th, int sig);

/* loop.c */
/* Waits for one stop and serves it. -EINTR: a signal came; -ECHILD: nobody is left. */
int loop_step(struct target *t, bool no_wait);
/* Serves the stop of @th, which may be gone then. -EAGAIN: it runs; -ECHILD: it is not ours. */
int loop_step_thread(struct target *t, struct thread *th);
void loop_serve(struct target *t, pid_t tid, int status);
/* @th ended, or is about to, in the middle of work for us: it is told and removed at the next
 * loop_step, for callers up the stack still know it, its process and its space. */
void loop_serve_later(struct target *t, struct thread *th, int status);
/* Takes the stop of @tid, which stays stopped, out of what the next wait finds. */
void loop_consume_stop(pid_t tid);
/* Makes @th repeat the call that a stop of ours made fail with -EINTR; see loop.c. */
void loop_restart_interrupted(struct target *t, struct thread *th);

/* loop_world.c */
/* Stops all threads of all processes, and lets them go on. */
void loop_stop_world(struct target *t);
/*
 * All threads stand still. One of @s that was interrupted before the signal of a breakpoint of ours stops
 * for that at once and is served: what it is made to do for us would take that signal, and with it what
 * keeps the thread alive if ptmem dies then; and after we have left nobody would know the signal. What its
 * process was told about stopping and going on comes first, and is served as well. @s may be gone after.
 */
void loop_take_traps(struct target *t, struct space *s);
void loop_start_world(struct target *t);
/* Sleeps until some child stops or ends, at most @ms: false. SIGCHLD is blocked, so none is missed. */
bool loop_wait_for_child(unsigned ms);

/* trap.c */
/* Serves a SIGTRAP of @th. */
enum trap_answer { TRAP_FOREIGN, TRAP_GO_ON, TRAP_WAIT }; /* WAIT: for room in the ring */
/*
 * To a guardian: whether @th stopped for a SIGTRAP that is the end of the last single step of the ptmem that is
 * gone: no program shall get it. The kernel says TRAP_TRACE, while the step flag is not the program's own; or, where
 * the step led into a signal's handler, the number of the signal (ptrace_notify).
 */
bool trap_is_left_over(const struct target *t, const struct thread *th);
enum trap_answer trap_serve(struct target *t, struct thread *th);
/* Calls of @th whose frames are gone, or all of them at its end. */
void trap_drop_calls(struct target *t, struct thread *th, taddr_t sp);
/* Whether a call that enters at @regs is part of one that is noted. Drops what is gone. @where: the
 * stack, NULL = as at a function's entry. */
/* Whether @th, whose stack pointer is @sp, is still inside the operator delete that it entered last. */
bool trap_is_in_delete(const struct thread *th, taddr_t sp);
bool trap_is_nested(struct target *t, struct thread *th, const struct arch_regs *regs,
		    const struct stack_view *where);
/* The view of a thread stopped anywhere: its own registers, nothing left out. */
void trap_fill_stopped_view(struct target *t, struct thread *th, const struct arch_regs *regs, struct stack_view *view);
void trap_fill_view(struct target *t, struct thread *th, const struct arch_regs *regs, taddr_t sp,
		    struct stack_view *view);

/* Sends @th, stopped as at the entry of @trap's function, through the stub of tier 1 (or the original). */
void trap_enter(struct target *t, struct thread *th, struct trap *trap, struct arch_regs *regs);

/* The same for one inside another call: nothing where it frees nothing. */
void trap_enter_inner_free(struct target *t, struct thread *th, struct trap *trap, const struct arch_regs *regs);

/* sample.c */
/* Calls what is due by now (sink's tick, samples of threads). */
void sample_run_timers(struct target *t);
/* @th stands still because sample_run_timers asked for it. */
void sample_take(struct target *t, struct thread *th);

/* thread_stacks.c; all of them do nothing where the sink has no stack_new. */
/* The threads of @s, which stand still, are the first that the sink hears of. */
void thread_stacks_begin(struct target *t, struct space *s);
/* @parent stands at the system call that made @born. */
void thread_stacks_born(struct target *t, struct thread *parent, struct thread *born);
/* @th is at its exit stop, and others of its process live on. */
void thread_stacks_exit(struct target *t, struct thread *th);

/* target.c */
/* Seizes and stops all threads of process @pid: 0 or -errno. */
int target_seize_all(struct target *t, pid_t pid);
/* Whether a process still has the space of @id. */
bool target_has_space(const struct target *t, uint32_t id);
/* All that happened until now is told to the sink. Everybody stands still. */
void target_catch_up(struct target *t);

/* target_leave.c */
/* An attach to @pid failed half-way: as if it had not been tried. Others go on. */
void target_undo_attach(struct target *t, pid_t pid);

/* install.c */
/* Fills t->stack_words: what threads of @s hold that points into text. */
void install_collect_words(struct target *t, struct space *s);
/* Whether @th stands in a pad, or a signal handler of its interrupted one. */
bool install_is_in_pads(struct target *t, struct thread *th);
/* Puts traps at all watched functions of all modules of @s and tells the sink of it; @th is stopped
 * and may be used to inject system calls (NULL: then only known areas are used). -ENOENT: there is
 * none, nor a dynamic linker to bring any; the sink heard nothing. */
int install_probes(struct target *t, struct space *s, struct thread *th);
/* The same at the first instruction of an image; without a watched function it is refused or let alone. */
void install_at_start(struct target *t, struct thread *th);
/* The same after the loader reported a change. */
void install_update(struct target *t, struct space *s, struct thread *th);
int install_start_trap(struct target *t, struct thread *th);
/*
 * Takes everything out of @s; all its threads are stopped, @th one of them (or NULL). False: a
 * signal handler interrupted code in our pages, which are still there; the text is restored, so
 * threads may run on before the next try. @is_last: leave such pages for ever.
 */
bool install_remove(struct target *t, struct space *s, struct thread *th, bool is_last);

/* inject.c */
/* Waits for a stop or the end of @th and consumes it. 0; -ESRCH: it died, and will be told later. */
int inject_wait(struct thread *th, int *status_out);
/* Steps @th, signals held back, until @is_there says so of its pc. -ETIMEDOUT; -ESRCH: it died. */
int inject_step_until(struct target *t, struct thread *th, bool (*is_there)(void *ctx, taddr_t pc), void *ctx,
		      unsigned max_steps);
/* Where a thread goes on that met the breakpoint at @trap; 0 = it is none of those waited for. */
typedef taddr_t inject_find_fn(void *ctx, taddr_t trap);
/* Lets @th run, signals held back, to a breakpoint that @find knows, and sets its pc as that says. It
 * must come to one soon. -ETIMEDOUT: it did not, and was stopped; -ESRCH: it died. */
int inject_run_to_trap(struct target *t, struct thread *th, inject_find_fn *find, void *ctx);
/*
 * A stop for SIGTRAP becomes that signal if ptmem dies: brings stopped thread @th to one that does not. A signal
 * that it holds is delivered first, so that it stands at its handler's start. -ESRCH: it died of it, or is gone.
 */
int inject_settle(struct target *t, struct thread *th);
/*
 * Runs a system call in stopped thread @th. *result_out: as the kernel returns it (-errno inside).
 * Where the space is guarded, the thread gets its registers back also if ptmem dies meanwhile.
 */
int inject_syscall(struct target *t, struct thread *th, long nr, const uint64_t args[6], int64_t *result_out);
/* The same for mmap of more address space, which target_mapped_bytes() knows of then. */
int inject_mmap(struct target *t, struct thread *th, const uint64_t args[6], int64_t *result_out);


#endif
