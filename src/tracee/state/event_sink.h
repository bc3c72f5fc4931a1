/*
 * Events in the traced processes, as reported to a sink. A callback may be NULL if its comment says
 * so.
 */
#ifndef PTMEM_TRACEE_STATE_EVENT_SINK_H
#define PTMEM_TRACEE_STATE_EVENT_SINK_H

#include <sys/types.h>

#include "base/heap_calls.h"
#include "base/types.h"
#include "tracee/state/heap_event.h"

struct custom_probe;
struct module;
struct within_call;
struct address_space;

/*
 * The stack of thread @tid extends from high, its first stack pointer, down to low; sp is the
 * current one.
 */
struct thread_stack_info {
	pid_t tid;
	taddr_t low, high, sp;
};

/* Why a space is no longer profiled. NEXT_IMAGE: an exec, and the new program is profiled, too. */
enum space_end { SPACE_EXITED, SPACE_EXEC, SPACE_NEXT_IMAGE, SPACE_DETACHED };

struct event_sink {
	void *ctx;

	/* -- address spaces and modules -- */

	/*
	 * A process whose modules are known is about to be stopped, to be attached to: time to
	 * read files. It may execute another program until it is. If the attach fails, this may be
	 * called again. May be NULL.
	 */
	void (*before_stop)(void *ctx, struct address_space *s);
	/*
	 * A process that is attached to is stopped, and nothing is installed yet: memory read now
	 * is unchanged when it continues. space_new follows, unless the attach fails; then this may
	 * be called again. NULL = nothing is to be read.
	 */
	void (*before_install)(void *ctx, struct address_space *s);
	/*
	 * A program begins: it is at its first instruction (start, exec) or already running
	 * (attach).
	 */
	void (*space_new)(void *ctx, struct address_space *s);
	/* @child is a fork of @parent and inherits all counts. */
	void (*space_fork)(void *ctx, struct address_space *parent, struct address_space *child);
	/* The last event of @s. Its memory may be gone already. */
	void (*space_end)(void *ctx, struct address_space *s, enum space_end why);
	/*
	 * The program that the process of @s executed is at its first instruction, and is not
	 * profiled because of @why: no space_new follows.
	 */
	void (*image_refused)(void *ctx, struct address_space *s, const char *why);
	/*
	 * @pid ends, is left, or (SPACE_NEXT_IMAGE) executes a program that is to be profiled;
	 * after space_end, which is not called if its program was not profiled. May be NULL.
	 */
	void (*process_left)(void *ctx, pid_t pid, enum space_end why);
	void (*module_loaded)(void *ctx, struct address_space *s, struct module *m);
	void (*module_unloaded)(void *ctx, struct address_space *s, struct module *m);

	/* -- allocations -- */

	/* @ev may be changed: it is not used after that. */
	void (*event)(void *ctx, struct address_space *s, struct heap_event *ev);
	/*
	 * Records of pads are next, if there are any, of what @s has done until now. @is_behind:
	 * some of them were at the last call, too. May be NULL.
	 */
	void (*records)(void *ctx, struct address_space *s, bool is_behind);
	/*
	 * Plain allocations and frees recorded by pads, in batches, while wants_quick returns true
	 * (called often). An allocation carries the result of `node` for its stack. @path (a
	 * thread's slot): as in struct heap_event. All three may be NULL.
	 */
	bool (*wants_quick)(void *ctx, struct address_space *s);
	uint32_t (*node)(void *ctx, struct address_space *s, const struct heap_event *ev);
	void (*quick)(void *ctx, struct address_space *s, const struct quick_event *ev,
		      size_t count);

	/*
	 * Thread @tid has entered a function of --within or --label, by the outermost call of it;
	 * or has left it. Of functions without ends (custom_probe_has_ends) each entry. All its
	 * events so far were reported. May be NULL if there are no such functions.
	 */
	void (*within_begin)(void *ctx, struct address_space *s, pid_t tid,
			     const struct within_call *call);
	void (*within_end)(void *ctx, struct address_space *s, pid_t tid,
			   const struct custom_probe *function);

	/* -- threads and processes -- */

	/* @tid is stopped on its way out. Events may follow before thread_exit. May be NULL. */
	void (*thread_exiting)(void *ctx, struct address_space *s, pid_t tid);
	void (*thread_exit)(void *ctx, struct address_space *s, pid_t tid);
	/*
	 * A thread of @s begins, or existed when @s began. May be NULL, together with
	 * stack_gone.
	 */
	void (*stack_new)(void *ctx, struct address_space *s, const struct thread_stack_info *info);
	/* A thread ends while others continue. */
	void (*stack_gone)(void *ctx, struct address_space *s, pid_t tid);
	/*
	 * @tid is the last thread of @pid, stopped on its way out; its memory still exists. May be
	 * NULL.
	 */
	void (*process_exit)(void *ctx, struct address_space *s, pid_t pid, pid_t tid);
	/* Whether the program that @pid just executed is excluded from profiling. NULL = never. */
	bool (*skip_exec)(void *ctx, pid_t pid);
	/*
	 * What is to be added to the environment of the program that the process of @s has just
	 * executed, which is profiled: "NAME=VALUE"; NULL = nothing. May be NULL.
	 */
	const char *(*variable)(void *ctx, const struct address_space *s);

	/* -- memory of the program -- */

	/* ptmem is about to map something in @s. May be NULL. */
	void (*will_map)(void *ctx, struct address_space *s);
	/*
	 * Address space @only, or all if it is 0, will be detached, and run until final_scan, which
	 * follows at once: time to prepare it. Like poll, it may stop the target and let it run.
	 */
	void (*prepare_final_scan)(void *ctx, uint32_t only);
	/*
	 * The last chance to read the memory of @s (watch_options.final_scan): all events have
	 * been reported, its threads are stopped, and it is about to exit or to be detached. Not
	 * called when it is killed.
	 */
	void (*final_scan)(void *ctx, struct address_space *s);

	/* -- the loop -- */

	/*
	 * The program sends the monitor command @text. Returns whether it is a known one. May be
	 * NULL.
	 */
	bool (*monitor)(void *ctx, struct address_space *s, const char *text);
	/*
	 * Called when clock_now_ns() passes the time that it returned last (first: at once);
	 * returns the next time, UINT64_MAX = never. NULL = never.
	 */
	uint64_t (*tick)(void *ctx, uint64_t now_ns);
	/*
	 * Called between events, and when a timer or signal wakes the loop; true = leave. May be
	 * NULL.
	 */
	bool (*poll)(void *ctx);
};

#endif
