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
#include "tracee/control/thread_stacks.h"

#include <linux/sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/unwinder.h"

#define STACK_SIZE_MIN (120ull << 20) /* arguments may take the rest of 128 MiB */
#define STACK_SIZE_MAX (64ull << 30)

static bool is_wanted(const struct target *t, const struct address_space *s)
{
	return t->sink.stack_new && s->sink.user && s->watch.is_profiled && s->watch.is_ready &&
	       !t->is_abandoned;
}

static void report(struct target *t, struct thread *th, taddr_t sp)
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
		const struct unwinder *u = th->process->space->sink.unwinder;
		if (!u->outermost_sp(u->ctx, &view, &high))
			high = find_high(maps, regs, t->arch);
	}
	pid_t reader = th->process->space->processes.reader;
	th->own_stack = (struct stack_range){find_low(reader, maps, high - 1), high};
}

void thread_stacks_begin(struct target *t, struct address_space *s)
{
	struct maps maps;
	struct thread *th;
	if (!is_wanted(t, s) || maps_read(s->processes.reader, &maps) != 0)
		return;
	for_each_thread_in(t, s, th) {
		struct arch_regs regs;
		if (th->process->is_vfork_child || th->is_exiting ||
		    ptrace_get_regs(th->tid, &regs) != 0)
			continue;
		find_attached(t, th, &regs, &maps);
		report(t, th, regs.word[t->arch->sp]);
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
	if (!is_wanted(t, s) || started->process->is_vfork_child ||
	    ptrace_get_regs(parent->tid, &regs) != 0)
		return;
	taddr_t sp = regs.word[t->arch->sp];
	started->own_stack = parent->own_stack;
	if (read_clone(t, parent->process->space, &regs, &started->own_stack))
		sp = started->own_stack.end;
	report(t, started, sp);
}

void thread_stacks_exit(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct arch_regs regs;
	if (!is_wanted(t, s) || th->process->is_vfork_child ||
	    ptrace_get_regs(th->tid, &regs) != 0 ||
	    (long)regs.word[t->arch->syscall_nr] != SYS_exit)
		return;
	pads_catch_up(t, s);
	t->sink.stack_gone(t->sink.ctx, s, th->tid);
}
