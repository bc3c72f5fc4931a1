/*
 * See stacks.h. Threads are sorted, and most are added in that order; consecutive events are mostly
 * from one thread, so the last one found is remembered.
 */
#include "profile/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/*
 * glibc's clone pushes two words on the new stack, which the thread pops before it calls
 * anything.
 */
#define ABOVE_START 4096u
/* A larger change of the stack pointer is a switch to another stack: Massif's --max-stackframe. */
#define MAX_FRAME 2000000u

struct thread_stack {
	uint32_t thread;
	taddr_t low, high;
	uint64_t depth;             /* last stack pointer on its own stack */
	uint64_t elsewhere; /* on another stack; 0 = it is not there, or at its highest place */
	taddr_t other_high, other_sp; /* highest place there; 0 = it is on its own stack */
};

struct stacks {
	VEC(struct thread_stack) list; /* by thread, ascending */
	size_t last;
	uint64_t bytes;             /* the sum of depth + elsewhere */
};

struct stacks *stacks_new(void)
{
	return xcalloc(1, sizeof(struct stacks));
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	vec_deinit(&s->list);
	free(s);
}

/* The index of @thread, or the place to insert it. */
static size_t find_place(const struct stacks *s, uint32_t thread)
{
	return vec_search(&s->list, e, e->thread < thread);
}

static struct thread_stack *find(struct stacks *s, uint32_t thread)
{
	if (s->last >= s->list.count || s->list.data[s->last].thread != thread)
		s->last = find_place(s, thread);
	bool is_there = s->last < s->list.count && s->list.data[s->last].thread == thread;
	return is_there ? &s->list.data[s->last] : NULL;
}

void stacks_add(struct stacks *s, uint32_t thread, taddr_t low, taddr_t high)
{
	stacks_remove(s, thread);
	size_t at = find_place(s, thread);
	vec_add(&s->list);
	memmove(&s->list.data[at + 1], &s->list.data[at],
		(s->list.count - 1 - at) * sizeof(*s->list.data));
	s->list.data[at] = (struct thread_stack){.thread = thread, .low = low, .high = high};
}

static void see_elsewhere(struct thread_stack *t, taddr_t sp)
{
	uint64_t moved = sp > t->other_sp ? sp - t->other_sp : t->other_sp - sp;
	if (!t->other_sp || moved > MAX_FRAME || sp > t->other_high)
		t->other_high = sp;
	t->other_sp = sp;
	t->elsewhere = t->other_high - sp;
}

void stacks_see(struct stacks *s, uint32_t thread, taddr_t sp)
{
	struct thread_stack *t = find(s, thread);
	if (!t)
		return;
	uint64_t before = t->depth + t->elsewhere;
	if (sp >= t->low && sp < t->high + ABOVE_START) {
		t->depth = sp < t->high ? t->high - sp : 0;
		t->elsewhere = t->other_high = t->other_sp = 0;
	} else {
		see_elsewhere(t, sp);
	}
	s->bytes += t->depth + t->elsewhere - before;
}

void stacks_remove(struct stacks *s, uint32_t thread)
{
	struct thread_stack *t = find(s, thread);
	if (!t)
		return;
	size_t at = (size_t)(t - s->list.data);
	s->bytes -= t->depth + t->elsewhere;
	memmove(t, t + 1, (--s->list.count - at) * sizeof(*t));
}

uint64_t stacks_bytes(const struct stacks *s)
{
	return s->bytes;
}
