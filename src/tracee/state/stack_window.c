/*
 * Copies of stacks.
 */
#include "tracee/state/stack_window.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

#define COPY_MIN 1024u
#define COPY_MAX 65536u
#define STACK_MAX (1ull << 30)
#define ABOVE_SIZE 65536u
#define ABOVE_SIZE_MIN 2048u

void stack_window_deinit(struct stack_window *w)
{
	free(w->copy);
	free(w->above);
}

static bool read_above(struct thread *th, taddr_t addr, void *buf, size_t size)
{
	struct stack_window *w = &th->window;
	if (addr < w->above_start || addr - w->above_start + size > w->above_size) {
		if (!w->above)
			w->above = xmalloc(ABOVE_SIZE);
		size_t want = MIN(MAX(2 * w->above_size, ABOVE_SIZE_MIN), ABOVE_SIZE);
		ssize_t n = space_read_some(th->process->space, addr, w->above, want);
		w->above_start = addr;
		w->above_size = n > 0 ? (size_t)n : 0;
	}
	if (addr - w->above_start + size > w->above_size)
		return false;
	memcpy(buf, w->above + (addr - w->above_start), size);
	return true;
}

/* Reads memory outside the copy; next time deeper stacks are copied completely, up to a limit. */
static int read_outside(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct thread *th = ctx;
	struct stack_window *w = &th->window;
	taddr_t end = addr + size - w->start; /* wraps to a large value below the stack pointer */
	if (end > w->want && end <= COPY_MAX)
		w->want = ROUND_UP(end, (size_t)COPY_MIN);
	if (end > COPY_MAX && end <= STACK_MAX && read_above(th, addr, buf, size))
		return 0;
	return space_read(th->process->space, addr, buf, size);
}

static void copy_stack(struct thread *th, taddr_t sp, struct stack_view *view)
{
	struct stack_window *w = &th->window;
	size_t want = MAX(w->want, COPY_MIN);
	w->start = sp;
	w->above_size = 0;
	w->copy = xgrow(w->copy, &w->capacity, want, 1);
	ssize_t n = space_read_some(th->process->space, sp, w->copy, want);
	w->size = n > 0 ? (size_t)n : 0;
	*view = (struct stack_view){
		.start = sp, .data = w->copy, .size = w->size,
		.read = read_outside, .read_ctx = th,
	};
}

void stack_window_at_stop(struct target *t, struct thread *th, const struct arch_regs *regs,
			  struct stack_view *view)
{
	copy_stack(th, regs->word[t->arch->sp], view);
	arch_unwind_regs(t->arch, regs, &view->regs);
	view->is_stopped = true;
}

void stack_window_at_entry(struct target *t, struct thread *th, const struct arch_regs *regs,
			   taddr_t sp, struct stack_view *view)
{
	uint64_t pc = 0;
	copy_stack(th, sp, view);
	arch_unwind_regs(t->arch, regs, &view->regs);
	if (th->window.size >= sizeof(pc))
		memcpy(&pc, th->window.copy, sizeof(pc));
	view->regs.reg[t->arch->dwarf_pc] = pc;
	view->regs.reg[t->arch->dwarf_sp] = sp + t->arch->return_size;
}
