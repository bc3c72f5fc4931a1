/* Blocks are visited in the order of their addresses, arena by arena. See python_report.h. */
#include "inspect/python_report.h"

#include <string.h>

#define TORN_MAX 4u /* what one allocation may leave half done */

const uint32_t python_step[PYTHON_STEPS] = {1, PYTHON_FEW, 25, 50, 75, 100};

struct seen_type {
	size_t arena;           /* the last one with blocks of the type: index + 1; 0 = none */
	uint64_t blocks;        /* in that one */
};

struct visitor {
	const struct pymalloc *pymalloc;
	struct heap_input heap;
	struct python_report *out;
	struct account look;
	size_t arena;           /* index of the current one */
	uint64_t live, blocks;  /* in it */
	VEC(struct seen_type) types; /* by number */
	VEC(uint32_t) here;     /* types in the current arena */
	VEC(struct python_pin) pins; /* by type */
};

/* -- types -- */

static void note_type(struct visitor *v, uint32_t type)
{
	while (v->types.count <= type) {
		const struct python_pin none = {.type = (uint32_t)v->types.count};

		*vec_add(&v->types) = (struct seen_type){0};
		*vec_add(&v->pins) = none;
	}
	struct seen_type *t = &v->types.data[type];

	if (t->arena != v->arena + 1) {
		*t = (struct seen_type){.arena = v->arena + 1};
		*vec_add(&v->here) = type;
	}
	t->blocks++;
}

static void pin(struct visitor *v)
{
	for (size_t i = 0; i < v->here.count; i++) {
		struct python_pin *p = &v->pins.data[v->here.data[i]];

		p->arenas++;
		p->blocks += v->types.data[p->type].blocks;
	}
}

static int compare_pins(const void *a, const void *b)
{
	const struct python_pin *x = a, *y = b;

	if (x->arenas != y->arenas)
		return x->arenas > y->arenas ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static void take_pins(struct visitor *v)
{
	for (size_t i = 0; i < v->pins.count; i++)
		if (v->pins.data[i].arenas)
			*vec_add(&v->out->pins) = v->pins.data[i];
	if (v->out->pins.count > 1)
		qsort(v->out->pins.data, v->out->pins.count, sizeof(*v->out->pins.data),
		      compare_pins);
}

/* -- arenas -- */

static void add_arena(struct python_arenas *to, uint64_t blocks, uint64_t counted, uint64_t free)
{
	to->count++;
	to->blocks += blocks;
	to->counted += counted;
	to->free += free;
}

static void end_arena(struct visitor *v)
{
	const struct pymalloc_range *a = &v->pymalloc->arenas.data[v->arena];
	struct inspect_bytes b = account_count(&v->look, a->start, a->end);
	uint64_t counted = b.resident + b.swapped, free = counted - MIN(counted, v->live);
	uint32_t i = 0;

	while (i + 1 < PYTHON_STEPS && v->live * 100 > python_step[i] * (a->end - a->start))
		i++;
	add_arena(&v->out->step[i], v->blocks, counted, free);
	add_arena(&v->out->all, v->blocks, counted, free);
	if (python_step[i] <= PYTHON_FEW)
		pin(v);
	v->live = v->blocks = 0;
	v->here.count = 0;
	v->arena++;
}

static void add_block(void *ctx, taddr_t addr, uint64_t usable)
{
	struct visitor *v = ctx;

	while (addr >= v->pymalloc->arenas.data[v->arena].end)
		end_arena(v);
	uint32_t type = heap_report_block(&v->heap, addr, usable);

	if (v->heap.types)
		note_type(v, type);
	v->live += usable;
	v->blocks++;
}

void python_report_make(struct pymalloc *p, const struct heap_input *heap,
			struct python_report *out)
{
	struct visitor v = {.pymalloc = p, .heap = *heap, .out = out};
	struct slabs_visit visit = {.fn = add_block, .ctx = &v};

	*out = (struct python_report){.found = p->found, .layout = p->layout,
				      .free_pools = p->free_pools, .interpreters = p->interpreters,
				      .has_lost = p->has_lost, .has_hooks = p->has_hooks};
	v.heap.block = heap->python_block;
	memcpy(out->classes, p->classes, sizeof(out->classes));
	account_init(&v.look, heap->memory->pages);
	slabs_visit(&p->slabs, heap->memory, &visit);
	while (v.arena < p->arenas.count)
		end_arena(&v);
	take_pins(&v);
	out->live_bytes = visit.sums.live_bytes;
	out->broken = p->slabs.broken;
	vec_deinit(&v.types);
	vec_deinit(&v.here);
	vec_deinit(&v.pins);
}

void python_report_deinit(struct python_report *r)
{
	vec_deinit(&r->pins);
}

bool python_report_is_torn(const struct python_report *r)
{
	return r->has_lost || (r->broken > 0 && r->broken <= TORN_MAX);
}
