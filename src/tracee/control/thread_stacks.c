/*
 * Samples of stack pointers. A thread that sleeps in the kernel is not disturbed: /proc has its
 * stack pointer. A running thread is interrupted, and reported at the stop (loop.c). A thread
 * inside a watched call is skipped: the call's event has its caller's stack pointer, and the stack
 * below contains our words. With thousands of threads sampling is slow, and so done less often.
 */
#include "tracee/control/thread_stacks.h"

#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pads.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "unwind/unwind.h"

#define MAX_LOOKS 3

/* The stack pointer of a sleeping thread; false if it is running, or cannot be read. */
static bool read_sleeping_sp(pid_t tid, taddr_t *sp_out, taddr_t *pc_out)
{
	char line[256];
	_cleanup_fclose_ FILE *f = proc_open(tid, "syscall");
	if (!f || !fgets(line, sizeof(line), f))
		return false;
	/* "NR ARG0 ... ARG5 SP PC", "-1 SP PC" or "running" */
	unsigned long long last[2] = {0, 0}, value;
	int words = 0, used;
	for (const char *p = line; sscanf(p, "%lli%n", (long long *)&value, &used) == 1;
	     p += used, words++) {
		last[0] = last[1];
		last[1] = value;
	}
	if (words < 3)
		return false;
	*sp_out = last[0];
	*pc_out = last[1];
	return true;
}

static bool is_in_call(struct thread *th, taddr_t sp, taddr_t pc)
{
	const struct address_space *s = th->process->space;
	const struct pad_slot *slot = pads_slot(th);
	if (space_find_area(s, pc))
		return true;
	if (slot && space_holds_above(s, sp, slot->return_at, slot->return_to))
		return true;
	const struct call *call = call_state_innermost(&th->calls);
	return call && space_holds_above(s, sp, call->return_at, call->stub_return);
}

/* Call it when exactly the records that @th wrote before the sample have been delivered. */
static void report_sample(struct target *t, struct thread *th, taddr_t sp)
{
	struct heap_event ev = {
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = HEAP_SAMPLE, .sp = sp};
	t->sink.event(t->sink.ctx, th->process->space, &ev);
}

static bool is_sampled(const struct target *t, const struct thread *th)
{
	const struct address_space *s = th->process->space;
	return s->watch.is_profiled && s->watch.is_ready && s->sink.user && !t->is_abandoned &&
	       !th->process->is_vfork_child;
}

void sample_take(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	th->wants_sample = false;
	if (!is_sampled(t, th) || ptrace_get_regs(th->tid, &regs) != 0 ||
	    is_in_call(th, regs.word[t->arch->sp], regs.word[t->arch->pc]))
		return;
	pads_catch_up_on(t, th);
	report_sample(t, th, regs.word[t->arch->sp]);
}

/*
 * The sample of a sleeping thread. It may wake at any time, and records that it has written since
 * its last one may be from before or after the sample, so the sample counts only if there are none.
 * False if it does not count.
 */
static bool take_sleeping(struct target *t, struct thread *th)
{
	taddr_t sp, pc;
	for (int i = 0; i < MAX_LOOKS; i++) {
		if (!read_sleeping_sp(th->tid, &sp, &pc))
			return false;
		bool is_inside = is_in_call(th, sp, pc);
		if (pads_catch_up_on(t, th))
			continue;
		if (!is_inside)
			report_sample(t, th, sp);
		return true;
	}
	return false;
}

void sample_threads(struct target *t)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (th->state != THREAD_RUNNING || th->is_exiting ||
		    th->was_interrupted || !is_sampled(t, th))
			continue;
		if (!take_sleeping(t, th) && thread_interrupt(t, th) == 0) {
			th->was_interrupted = true;
			th->wants_sample = true;
		}
	}
}

/*
 * Determines the bounds of threads' stacks for a sink that counts them (event_sink.stack_new).
 *
 *	a program begins    the stack pointer at its first instruction (startstack of
 *	                    /proc/PID/stat), down to the next mapping, into which it cannot grow
 *	a thread begins     the stack passed to clone
 *	a process forks     the child continues with the stack of the thread that forked
 *	attached            first thread: as above; others: the stack pointer in the outermost
 *	                    frame, which is the one passed to clone
 */

#define STACK_SIZE_MIN (120ull << 20) /* arguments may take the rest of 128 MiB */
#define STACK_SIZE_MAX (64ull << 30)

static bool is_reported(const struct target *t, const struct address_space *s)
{
	return t->sink.stack_new && s->sink.user && s->watch.is_profiled && s->watch.is_ready &&
	       !t->is_abandoned;
}

static void report_stack(struct target *t, struct thread *th, taddr_t sp)
{
	const struct thread_stack_info info = {
		.tid = th->tid, .low = th->own_stack.start, .high = th->own_stack.end, .sp = sp,
	};
	t->sink.stack_new(t->sink.ctx, th->process->space, &info);
}

/* The first stack pointer of @pid's program; 0 = unknown. */
static taddr_t read_start_stack(pid_t pid)
{
	struct proc_stat st;
	return proc_stat_read(pid, &st) == 0 ? st.start_stack : 0;
}

/*
 * How far down the first thread's stack of @pid, which begins at @sp, can grow. Its limit may be
 * raised by the program; but the kernel keeps at least 128 MiB free below the top, and mappings are
 * below those, or far below if there is no limit (mmap_base() of Linux).
 */
static taddr_t limit_of_stack(pid_t pid, taddr_t sp)
{
	struct rlimit limit;
	uint64_t size = prlimit(pid, RLIMIT_STACK, NULL, &limit) == 0 ? limit.rlim_cur : 0;
	size = MIN(MAX(size, STACK_SIZE_MIN), STACK_SIZE_MAX);
	return sp > size ? sp - size : 0;
}

/*
 * How far down the stack of @pid that contains @sp can grow: its mapping; the first thread's
 * grows.
 */
static taddr_t find_low(pid_t pid, const struct maps *maps, taddr_t sp)
{
	taddr_t end = 0;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (sp < m->end && map_is_main_stack(m))
			return MAX(end, limit_of_stack(pid, sp));
		if (sp < m->end)
			return sp < m->start ? end : m->start;
		end = m->end;
	}
	return end;
}

/*
 * The bounds of a stack according to its mapping: the thread's control block, if any, is after
 * it.
 */
static taddr_t find_high(const struct maps *maps, const struct arch_regs *regs,
			 const struct arch *arch)
{
	taddr_t sp = regs->word[arch->sp], pointer = regs->word[arch->thread_pointer];
	const struct map *m = maps_find(maps, sp);
	if (!m)
		return sp;
	return pointer > sp && pointer < m->end ? pointer : m->end;
}

static void find_attached(struct target *t, struct thread *th, const struct arch_regs *regs,
			  const struct maps *maps)
{
	struct stack_view view;
	taddr_t high = 0;
	if (th->tid == th->process->pid)
		high = read_start_stack(th->tid);
	if (!high) {
		stack_window_at_stop(t, th, regs, &view);
		if (!unwind_outermost_sp(th->process->space->sink.unwind, &view, &high))
			high = find_high(maps, regs, t->arch);
	}
	pid_t reader = th->process->space->processes.reader;
	th->own_stack = (struct stack_range){find_low(reader, maps, high - 1), high};
}

void thread_stacks_begin(struct target *t, struct address_space *s)
{
	struct maps maps;
	struct thread *th;
	if (!is_reported(t, s) || maps_read(s->processes.reader, &maps) != 0)
		return;
	for_each_thread_in(t, s, th) {
		struct arch_regs regs;
		if (th->process->is_vfork_child || th->is_exiting ||
		    ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		find_attached(t, th, &regs, &maps);
		report_stack(t, th, regs.word[t->arch->sp]);
	}
	maps_deinit(&maps);
}

/* The stack that the clone with @regs gives its child; false if it uses its parent's. */
static bool read_clone(struct target *t, struct address_space *s, const struct arch_regs *regs,
		       struct stack_range *out)
{
	uint64_t first = regs->word[t->arch->syscall_arg[0]],
		 second = regs->word[t->arch->syscall_arg[1]];
	struct clone_args args = {0};
	struct maps maps;
	switch ((long)regs->word[t->arch->syscall_nr]) {
	case SYS_clone3:
		if (space_read(s, first, &args, CLONE_ARGS_SIZE_VER0) != 0 || !args.stack)
			return false;
		*out = (struct stack_range){args.stack, args.stack + args.stack_size};
		return true;
	case SYS_clone:
		if (!second || maps_read(s->processes.reader, &maps) != 0)
			return false;
		*out = (struct stack_range){find_low(s->processes.reader, &maps, second - 1),
					    second};
		maps_deinit(&maps);
		return true;
	}
	return false;
}

void thread_stacks_thread_started(struct target *t, struct thread *parent, struct thread *started)
{
	struct address_space *s = started->process->space;
	struct arch_regs regs;
	/*
	 * a vfork child runs on its parent's stack, posix_spawn's on one of the parent's, both
	 * briefly
	 */
	if (!is_reported(t, s) || started->process->is_vfork_child ||
	    ptrace_get_regs(parent->tid, &regs) != 0)
		return;
	taddr_t sp = regs.word[t->arch->sp];
	started->own_stack = parent->own_stack;
	if (read_clone(t, parent->process->space, &regs, &started->own_stack))
		sp = started->own_stack.end;
	report_stack(t, started, sp);
}

void thread_stacks_last(struct target *t, struct thread *th)
{
	if (is_reported(t, th->process->space))
		sample_take(t, th);
}

void thread_stacks_exit(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct arch_regs regs;
	if (!is_reported(t, s) || th->process->is_vfork_child ||
	    ptrace_get_regs(th->tid, &regs) != 0 ||
	    (long)regs.word[t->arch->syscall_nr] != SYS_exit)
		return;
	pads_catch_up(t, s);
	t->sink.stack_gone(t->sink.ctx, s, th->tid);
}
