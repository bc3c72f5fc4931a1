/* Registers and stacks of all threads. See thread_views.h. */
#include "tracee/control/thread_views.h"

#include "tracee/control/roots.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/stack_window.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

static bool has_returned(const struct target *t, const struct thread *th, taddr_t pc)
{
	const struct trap *trap =
		space_trap_find(th->process->space, pc - t->arch->trap_pc_offset);

	return trap && trap->kind == TRAP_RETURN && !call_state_innermost(&th->calls);
}

static void show(struct target *t, struct thread *th,
		 void (*fn)(void *ctx, const struct thread_view *view), void *ctx)
{
	struct arch_regs regs;
	struct stack_view stack;

	if (ptrace_get_regs(th->tid, &regs) != 0) {
		if (!th->vfork.is_waiting)
			return;
		regs = th->vfork.regs;
	}
	stack_window_at_stop(t, th, &regs, &stack);
	taddr_t pc = regs.word[t->arch->pc], sp = regs.word[t->arch->sp];

	fn(ctx, &(struct thread_view){
			.tid = th->tid, .pc = pc, .sp = sp,
			.thread_pointer = regs.word[t->arch->thread_pointer],
			.has_call = call_state_reaches(&th->calls, sp),
			.has_returned = has_returned(t, th, pc),
			.stack = &stack});
}

/* Threads of @p after their exit stops; their stacks do not change. */
static void show_exited(const struct process *p, void (*fn)(void *ctx, const struct thread_view *v),
			void *ctx)
{
	for (size_t i = 0; p->exit_roots && i < p->exit_roots->threads.count; i++) {
		const struct root_thread *th = &p->exit_roots->threads.data[i];

		fn(ctx, &(struct thread_view){.tid = th->tid, .pc = th->pc, .sp = th->sp,
					      .thread_pointer = th->thread_pointer});
	}
}

void thread_views_each(struct target *t, struct address_space *s,
		       void (*fn)(void *ctx, const struct thread_view *view), void *ctx)
{
	struct thread *th;

	for_each_thread_in(t, s, th) {
		if (!th->is_exiting)
			show(t, th, fn, ctx);
	}
	for (size_t i = 0; i < t->processes.count; i++)
		if (t->processes.data[i]->space == s)
			show_exited(t->processes.data[i], fn, ctx);
}
