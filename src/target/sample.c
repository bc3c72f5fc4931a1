/*
 * What happens by the clock: the sink's tick, and samples of stack pointers.
 *
 * A thread that sleeps in the kernel is not disturbed: /proc tells its stack pointer.
 * One that runs is interrupted, and told at the stop (loop.c).
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "target/ptrace.h"
#include "target/thread.h"

/* The stack pointer of a sleeping thread; false where it runs, or cannot be read. */
static bool read_sleeping_sp(pid_t tid, taddr_t *sp_out)
{
	char name[64], line[256];
	snprintf(name, sizeof(name), "/proc/%d/syscall", (int)tid);
	_cleanup_fclose_ FILE *f = fopen(name, "re");
	if (!f || !fgets(line, sizeof(line), f))
		return false;
	/* "NR ARG0 ... ARG5 SP PC", "-1 SP PC" or "running" */
	unsigned long long last[2] = {0, 0}, value;
	int words = 0, used;
	for (const char *p = line; sscanf(p, "%lli%n", (long long *)&value, &used) == 1; p += used, words++) {
		last[0] = last[1];
		last[1] = value;
	}
	if (words < 3)
		return false;
	*sp_out = last[0];
	return true;
}

static void tell(struct target *t, struct thread *th, taddr_t sp)
{
	struct space *s = th->process->space;
	struct heap_event ev = {.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = HEAP_SAMPLE, .sp = sp};
	if (s->is_profiled && s->is_ready && s->user && !t->is_abandoned && !th->process->is_vfork_child)
		t->sink.event(t->sink.ctx, s, &ev);
}

void sample_take(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	th->wants_sample = false;
	if (ptrace_get_regs(th->tid, &regs) == 0)
		tell(t, th, regs.word[t->arch->sp]);
}

static void sample_threads(struct target *t)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		taddr_t sp;
		if (!th || th->state != THREAD_RUNNING || th->is_exiting || th->waits_for_room || th->was_interrupted ||
		    !th->process->space->is_ready || !th->process->space->is_profiled)
			continue;
		if (read_sleeping_sp(th->tid, &sp)) {
			tell(t, th, sp);
		} else if (ptrace_interrupt(th->tid) == 0) {
			th->was_interrupted = true;
			th->wants_sample = true;
		}
	}
}

void sample_run_timers(struct target *t)
{
	t->now_ns = target_clock();
	if (t->options.sample_ns && t->now_ns >= t->next_sample_ns) {
		sample_threads(t);
		t->next_sample_ns = t->now_ns + t->options.sample_ns;
	}
	if (t->sink.tick && t->now_ns >= t->next_sink_ns)
		t->next_sink_ns = t->sink.tick(t->sink.ctx, t->now_ns);
	t->next_tick_ns = MIN(t->options.sample_ns ? t->next_sample_ns : UINT64_MAX,
			      t->sink.tick ? t->next_sink_ns : UINT64_MAX);
}
