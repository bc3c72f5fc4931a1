/*
 * Samples of stack pointers. A thread that sleeps in the kernel is not disturbed: /proc has its
 * stack pointer. A running thread is interrupted, and reported at the stop (loop.c). A thread
 * inside a watched call is skipped: the call's event has its caller's stack pointer, and the stack
 * below contains our words. With thousands of threads sampling is slow, and so done less often.
 */
#include "tracee/control/sample.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "tracee/os/ptrace.h"
#include "tracee/pads/pad_delivery.h"
#include "tracee/pads/pad_threads.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

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
static void report(struct target *t, struct thread *th, taddr_t sp)
{
	struct heap_event ev = {
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = HEAP_SAMPLE, .sp = sp};
	t->sink.event(t->sink.ctx, th->process->space, &ev);
}

static bool is_wanted(const struct target *t, const struct thread *th)
{
	const struct address_space *s = th->process->space;
	return s->watch.is_profiled && s->watch.is_ready && s->sink.user && !t->is_abandoned &&
	       !th->process->is_vfork_child;
}

void sample_take(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	th->wants_sample = false;
	if (!is_wanted(t, th) || ptrace_get_regs(th->tid, &regs) != 0 ||
	    is_in_call(th, regs.word[t->arch->sp], regs.word[t->arch->pc]))
		return;
	pads_catch_up_on(t, th);
	report(t, th, regs.word[t->arch->sp]);
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
			report(t, th, sp);
		return true;
	}
	return false;
}

void sample_threads(struct target *t)
{
	struct thread *th;
	for_each_thread(t, th) {
		if (th->state != THREAD_RUNNING || th->is_exiting ||
		    th->was_interrupted || !is_wanted(t, th))
			continue;
		if (!take_sleeping(t, th) && ptrace_interrupt(th->tid) == 0) {
			th->was_interrupted = true;
			th->wants_sample = true;
		}
	}
}
