/*
 * A stack is the mapping of a stack pointer, in use from there to the mapping's end, or to the
 * thread's variables, which follow it:
 *
 *	| touched | red zone | in use | thread variables, libc's descriptor of the thread |
 *	                     sp                          thread pointer
 *
 * A thread in a signal handler may have two: the handler's own, and that of the code which it
 * interrupted. One in the data of a program or library is that object's.
 */
#include "inspect/thread_spans.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define RED_ZONE 128u
/* glibc's descriptor of a thread follows its thread pointer: 2304 bytes (2.28) to 2368 (2.41). */
#define THREAD_BYTES 2304u

struct stack {
	const struct map *map;
	taddr_t low; /* the lowest stack pointer in it */
};

/* The stacks of a thread, innermost first. */
struct stacks {
	struct stack list[1 + THREAD_INTERRUPTED];
	size_t count;
};

static void add_stack(const struct inspect_input *in, taddr_t sp, struct stacks *out)
{
	const struct map *m = maps_find(&in->resident.maps, sp);

	if (!m || m->is_shared || inspect_is_object(in, m))
		return;
	for (size_t i = 0; i < out->count; i++) {
		if (out->list[i].map != m)
			continue;
		out->list[i].low = MIN(out->list[i].low, sp);
		return;
	}
	out->list[out->count++] = (struct stack){m, sp};
}

static void find_stacks(const struct inspect_input *in, const struct glibc_thread *th,
			struct stacks *out)
{
	out->count = 0;
	add_stack(in, th->sp, out);
	for (uint32_t i = 0; i < th->interrupted_count; i++)
		add_stack(in, th->interrupted[i], out);
}

static bool has_map(const struct stacks *stacks, const struct map *m)
{
	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->list[i].map == m)
			return true;
	return false;
}

struct adder {
	const struct inspect_input *in;
	struct inspect_memory *memory;
	struct spans *spans;
	struct block_holders *holders;
};

static void hold(const struct adder *a, const struct holder_thread *of)
{
	if (a->in->wants_holders)
		*vec_add(&a->holders->threads) = *of;
}

static void add_variables(const struct adder *a, const struct glibc_thread *th,
			  const struct stacks *stacks)
{
	const struct map *m = maps_find(&a->in->resident.maps, th->thread_pointer);

	if (!m)
		return;
	taddr_t start = MAX(glibc_tls_start(a->memory, th->thread_pointer), m->start);
	taddr_t end = MIN(th->thread_pointer + THREAD_BYTES, m->end);

	/* the rest of the page at the end of a stack belongs to it */
	if (has_map(stacks, m))
		end = MIN(ROUND_UP(end, PAGE), m->end);
	spans_add(a->spans, start, end, ROW_TLS);
	hold(a, &(struct holder_thread){.tid = th->tid, .tls = start, .tls_end = end});
}

static void add_parts(const struct adder *a, const struct glibc_thread *th,
		      const struct stack *stack)
{
	const struct map *m = stack->map;
	bool has_tls = th->thread_pointer > stack->low && th->thread_pointer < m->end;
	taddr_t start = MAX(m->start, stack->low - MIN(stack->low, (taddr_t)RED_ZONE));
	taddr_t end = has_tls ? th->thread_pointer : m->end;

	spans_add(a->spans, start, end, ROW_STACK);
	spans_add(a->spans, m->start, start, ROW_STACK_BEYOND);
	hold(a, &(struct holder_thread){.tid = th->tid, .stack = start, .stack_end = end});
}

void thread_spans_add(const struct inspect_input *in, struct inspect_memory *m, struct spans *s,
		      struct block_holders *holders)
{
	const struct adder a = {in, m, s, holders};
	struct stacks stacks;

	for (size_t i = 0; i < in->threads.count; i++) {
		const struct glibc_thread *th = &in->threads.data[i];

		find_stacks(in, th, &stacks);
		add_variables(&a, th, &stacks);
		for (size_t k = 0; k < stacks.count; k++)
			add_parts(&a, th, &stacks.list[k]);
	}
}
