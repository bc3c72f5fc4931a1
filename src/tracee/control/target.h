/*
 * The traced processes: starts or attaches to, follows and detaches from them; and runs the loop
 * that turns their stops into events for a sink.
 *
 * A target has processes, their threads and their address spaces:
 *
 *	process --- space (shared by vfork and CLONE_VM children)
 *	       \\-- threads
 *
 * Independent of unwinding, profiles and formats, which belong to the sink.
 */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_H
#define PTMEM_TRACEE_CONTROL_TARGET_H

#include "base/clock.h"
#include "base/types.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"

struct registry;
struct target;

/* @registry is the caller's and outlives the target. */
struct target *target_new(const struct target_options *options, const struct event_sink *sink,
			  struct registry *registry);
void target_free(struct target *t);

/*
 * Starts @argv under tracing, stopped at its first instruction after the first steps of target_run.
 * -errno of the failed execve (nothing has run), -EPERM if tracing is not possible.
 */
int target_start(struct target *t, char *const argv[]);

/* Why an attach failed, for the caller's message. */
enum attach_problem {
	ATTACH_OK, ATTACH_NO_PROCESS, ATTACH_TRACED, ATTACH_PERMISSION, ATTACH_32BIT, ATTACH_SELF,
	ATTACH_NO_PROBES, ATTACH_NO_FAULTS, ATTACH_KERNEL_THREAD, ATTACH_OTHER,
	ATTACH_ZOMBIE,
	/* a thread, *detail_out, cannot be stopped */
	ATTACH_STUCK,
	/* it keeps executing programs; the SIGTRAP handler could not be installed */
	ATTACH_EXECUTES, ATTACH_NO_HANDLER,
};
/* The state of @pid from /proc: ATTACH_OK, NO_PROCESS, ZOMBIE or KERNEL_THREAD. */
enum attach_problem target_check_pid(pid_t pid);

/*
 * Why the started program was killed before its first instruction: ATTACH_32BIT or
 * ATTACH_NO_PROBES; ATTACH_OK if it was not.
 */
enum attach_problem target_refusal(const struct target *t);

/* Whether target_detach returns only when the processes have ended: they run under our filter. */
bool target_must_stay(const struct target *t);
/* Detaches from all: restores text, removes stubs that no thread is in. */
void target_detach(struct target *t);

/*
 * Detaches from the process @pid and those that share its memory, whose profile ends; the others
 * go on. Of the sink's callbacks only poll may call this.
 */
void target_detach_process(struct target *t, pid_t pid);

/*
 * The same after a failed check, when our own data cannot be trusted: no more events are
 * reported.
 */
void target_abandon(struct target *t);

/*
 * Stops all threads, delivers all events, calls @fn for each profiled space, and resumes all.
 * Returns the duration of the stop, ns. Of the sink's callbacks only poll may call this.
 */
uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct address_space *s),
			void *ctx);

/*
 * Only within the callback of target_inspect, before_install, or space_new of a target that only
 * reads: lets the threads that @wants selects run for @ns, or longer if they do not get a CPU, and
 * stops them again. All others stay stopped. Delivers all events. Threads and processes may have
 * ended: false if @s has.
 */
bool target_run_threads(struct target *t, struct address_space *s,
			bool (*wants)(void *ctx, pid_t tid), void *ctx, uint32_t ns);

/*
 * Likewise: single-steps the stopped thread @tid until it is at @pc, to which it will soon return.
 * False if it is somewhere else then, as in inject_step_to. Only a process that survives ptmem's
 * death in the middle of that is stepped: within before_install, most are. Adds its steps to
 * *steps.
 */
bool target_step_thread(struct target *t, struct address_space *s, pid_t tid, taddr_t pc,
			uint32_t *steps);

/* Calls @fn for each profiled space as it is now, without stopping threads. */
void target_each(struct target *t, void (*fn)(void *ctx, struct address_space *s), void *ctx);

/* Reports all events so far to the sink. All threads must be stopped. */
void target_catch_up(struct target *t);

/* The wait status of the started program once it has ended; false before. */
bool target_exit_status(const struct target *t, int *status_out);
pid_t target_first_pid(const struct target *t);

/* Whether process @pid is traced now. */
bool target_traces(const struct target *t, pid_t pid);
/* Number of records that pads have written, and ptmem has read. */
uint64_t target_records(const struct target *t);
/* Number of processes that are traced now. */
unsigned target_process_count(const struct target *t);
/* Whether any thread is traced: not at the end of the last process, nor once all are detached. */
bool target_is_tracing(const struct target *t);

/* The number of bytes of ptmem's own mappings in process @pid; 0 if it is not followed. */
uint64_t target_mapped_bytes(const struct target *t, pid_t pid);

/* How page faults were watched; zeros if they were not. */
struct fault_report {
	uint64_t lost;        /* faults counted by the kernel but not reported as events */
	bool was_full;        /* a ring was full */
	bool is_user_only;    /* faults in system calls are missing */
	bool is_limited;      /* rings would be larger with a higher limit of locked memory */
	size_t ring_size;     /* bytes for each CPU */
	uint32_t stack_copy;  /* bytes of the stack copied for each fault */
};
int target_fault_error(const struct target *t); /* -errno if they could not be watched; 0 */
void target_fault_report(const struct target *t, struct fault_report *out);

const struct target_stats *target_stats(const struct target *t);

/* Instructions executed so far by all threads (count_instructions). */
uint64_t target_instructions(const struct target *t);

/* Searches for new or removed modules of @s; an unwinder calls it for an unknown address. Cheap if
 * @pc was not found before, and nothing has changed since. Returns the module or NULL. */
struct module *target_refresh_module(struct target *t, struct address_space *s, taddr_t pc);

/* The event loop. */

/* Runs until no process is left, or the sink's poll returns true. */
void target_run(struct target *t);

/*
 * Handles stops and records until @is_done, which is asked about each millisecond, or no process is
 * left. Neither timers run nor poll. Of the sink's callbacks only poll may call this.
 */
void target_run_until(struct target *t, bool (*is_done)(void *ctx), void *ctx);

/* Makes a running target_run call poll soon; async-signal-safe. */
void target_wake(void);

#endif
