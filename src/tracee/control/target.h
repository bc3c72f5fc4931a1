/*
 * The traced processes: start or attach, follow, detach; and the loop that turns
 * their stops into events for a sink.
 *
 * A target holds processes, their threads and their address spaces:
 *
 *	process --- space (shared by vfork and CLONE_VM children)
 *	   \-- threads
 *
 * Knows nothing of unwinding, profiles or formats: the sink does.
 */
#ifndef PTMEM_TRACEE_CONTROL_TARGET_H
#define PTMEM_TRACEE_CONTROL_TARGET_H

#include "base/types.h"
#include "tracee/os/clock.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/target_stats.h"

struct target;

struct target *target_new(const struct target_options *options, const struct event_sink *sink);
void target_free(struct target *t);

/*
 * Starts @argv under tracing, stopped at its first instruction after return of
 * target_run's first steps. -errno of the failed execve (nothing ran), -EPERM
 * when tracing is not possible.
 */
int target_start(struct target *t, char *const argv[]);

/* Why an attach failed, for a message of the caller's. */
enum attach_problem {
	ATTACH_OK, ATTACH_NO_PROCESS, ATTACH_TRACED, ATTACH_PERMISSION, ATTACH_32BIT, ATTACH_SELF,
	ATTACH_NO_PROBES, ATTACH_NO_FAULTS, ATTACH_KERNEL_THREAD, ATTACH_OTHER,
	/* of a process that has ended; of one whose other threads run */
	ATTACH_ZOMBIE, ATTACH_DEAD_LEADER,
	/* a thread, in @detail_out, cannot be stopped */
	ATTACH_STUCK,
	/* it executes programs all the time; its handler of SIGTRAP could not be installed */
	ATTACH_EXECUTES, ATTACH_NO_HANDLER,
};
/* What /proc alone says of @pid: ATTACH_OK, NO_PROCESS, ZOMBIE, DEAD_LEADER or KERNEL_THREAD. */
enum attach_problem target_check_pid(pid_t pid);

/*
 * Why the started program was killed before its first
 * instruction: ATTACH_32BIT, ATTACH_NO_PROBES. OK: it was not.
 */
enum attach_problem target_refusal(const struct target *t);

/*
 * Whether target_detach will not return before the
 * processes ended: they run under a filter of ours.
 */
bool target_must_stay(const struct target *t);
/* Detaches from all: text restored, stubs removed where no thread is in them. */
void target_detach(struct target *t);

/* The same after a failed check, when nothing of ours may be trusted: no event is made any more. */
void target_abandon(struct target *t);

/*
 * Stops all threads, delivers all events, calls @fn for each profiled space, and resumes
 * all. Returns how long they were stopped, ns. Not from within a callback of the
 * sink other than poll.
 */
uint64_t target_inspect(struct target *t, void (*fn)(void *ctx, struct address_space *s),
			void *ctx);

/*
 * Within the callback of target_inspect, before_install, or space_new of a target that only reads:
 * lets the threads that @wants selects run for @ns, or longer if they do not come to a CPU, and
 * stops them again. All others stay stopped. All events are delivered. Threads and processes may
 * have ended: false if @s has.
 */
bool target_run_threads(struct target *t, struct address_space *s,
			bool (*wants)(void *ctx, pid_t tid), void *ctx, uint32_t ns);

/* Calls @fn for each profiled space as it is now, without stopping threads. */
void target_each(struct target *t, void (*fn)(void *ctx, struct address_space *s), void *ctx);

/* Reports all that happened until now to the sink. All threads are stopped. */
void target_catch_up(struct target *t);

/* The wait status of the started program, once it ended; false before. */
bool target_exit_status(const struct target *t, int *status_out);
pid_t target_first_pid(const struct target *t);

/* Number of processes that are traced now. */
unsigned target_process_count(const struct target *t);

/* How much of the address space of process @pid is ptmem's; 0 if it is not followed. */
uint64_t target_mapped_bytes(const struct target *t, pid_t pid);

/* How page faults were watched; zeros if they were not. */
struct fault_report {
	uint64_t lost;        /* faults that the kernel counted and no event reported */
	bool was_full;        /* a ring had no room for a record */
	bool is_user_only;    /* the ones in system calls are left out */
	bool is_limited;      /* rings would be larger if more memory could be locked */
	size_t ring_size;     /* bytes, for each CPU */
	uint32_t stack_copy;  /* bytes of the stack that are known of each */
};
int target_fault_error(const struct target *t); /* why they could not be watched; 0 */
void target_fault_report(const struct target *t, struct fault_report *out);

const struct target_stats *target_stats(const struct target *t);

/* Instructions executed so far by all threads (count_instructions). */
uint64_t target_instructions(const struct target *t);

/* Looks for new or gone modules of @s now; what an unwinder calls for an unknown address.
 * Cheap when @pc was looked up in vain since the last change. Returns the module or NULL. */
struct module *target_refresh_module(struct target *t, struct address_space *s, taddr_t pc);

#endif
