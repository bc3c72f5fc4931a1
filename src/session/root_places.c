/* Objects by their segments, stacks and thread-local memory by registers. See root_places.h. */
#include "session/root_places.h"

#include <stdlib.h>

#include "base/elf_file.h"
#include "session/final_scan.h"
#include "tracee/state/module.h"

static int compare_ranges(const void *a, const void *b)
{
	const struct root_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Whole pages are mapped: the first may begin before the segment. */
static void add_object(struct root_places *p, const struct module *m)
{
	for (size_t i = 0; m->file && !m->is_vdso && i < m->file->segment_count; i++) {
		const struct elf_segment *g = &m->file->segment[i];
		taddr_t start = m->bias + g->vaddr;

		*vec_add(&p->objects) = (struct root_range){ROUND_DOWN(start, PAGE_SIZE_MIN),
							    start + g->memsz};
	}
}

void root_places_init(struct root_places *p, const struct final_scan *scan)
{
	*p = (struct root_places){.roots = scan->roots};
	for (size_t i = 0; i < scan->modules.list.count; i++)
		add_object(p, scan->modules.list.data[i]);
	if (p->objects.count > 1)
		qsort(p->objects.data, p->objects.count, sizeof(*p->objects.data), compare_ranges);
}

void root_places_deinit(struct root_places *p)
{
	vec_deinit(&p->objects);
}

static bool is_within(const struct root_range *range, taddr_t addr)
{
	return addr >= range->start && addr < range->end;
}

static const struct root_range *find_range(const struct roots *r, taddr_t addr)
{
	size_t i = vec_search(&r->memory, e, e->end <= addr);

	return i < r->memory.count && r->memory.data[i].start <= addr ? &r->memory.data[i] : NULL;
}

/*
 * The nearest stack pointer below @addr in its memory says whose stack it is in. Without one, it is
 * in the memory of a thread that has its descriptor there: the thread's variables.
 */
static enum root_place find_thread(const struct roots *r, taddr_t addr, pid_t *tid_out)
{
	const struct root_range *range = find_range(r, addr);
	const struct root_thread *owner = NULL, *descriptor = NULL;

	for (size_t i = 0; range && i < r->threads.count; i++) {
		const struct root_thread *th = &r->threads.data[i];

		if (is_within(range, th->sp) && th->sp <= addr && (!owner || th->sp > owner->sp))
			owner = th;
		if (is_within(range, th->thread_pointer))
			descriptor = th;
	}
	bool is_on_stack = owner && !(owner == descriptor && addr >= owner->thread_pointer);
	const struct root_thread *th = is_on_stack ? owner : descriptor;

	*tid_out = th ? th->tid : 0;
	return is_on_stack ? ROOT_STACK : th ? ROOT_THREAD_LOCAL : ROOT_OTHER;
}

enum root_place root_places_find(const struct root_places *p, taddr_t addr, pid_t *tid_out)
{
	size_t i = vec_search(&p->objects, e, e->start <= addr);

	*tid_out = 0;
	if (i > 0 && is_within(&p->objects.data[i - 1], addr))
		return ROOT_VARIABLE;
	return find_thread(p->roots, addr, tid_out);
}
