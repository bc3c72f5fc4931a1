/*
 * Sums up the chunks of glibc's heaps, in a thread of its own, and the blocks of Python's
 * allocator.
 */
#include "inspect/heap_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/parallel.h"

static void pass(const struct chunk_queue *q, const struct chunk_batch *b)
{
	for (size_t i = 0; i < b->count; i++)
		q->fn(q->ctx, &b->chunk[i]);
}

static void *pass_all(void *ctx)
{
	struct chunk_queue *q = ctx;

	pthread_mutex_lock(&q->lock);
	while (q->emptied < q->filled || !q->is_ended) {
		if (q->emptied == q->filled) {
			pthread_cond_wait(&q->given, &q->lock);
			continue;
		}
		const struct chunk_batch *b = &q->batch[q->emptied % CHUNK_BATCHES];

		pthread_mutex_unlock(&q->lock);
		pass(q, b);
		pthread_mutex_lock(&q->lock);
		q->emptied++;
		pthread_cond_signal(&q->returned);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

void chunk_queue_start(struct chunk_queue *q, chunk_fn *fn, void *ctx, bool wants_thread)
{
	*q = (struct chunk_queue){.fn = fn, .ctx = ctx};
	q->batch = xmalloc((wants_thread ? CHUNK_BATCHES : 1) * sizeof(*q->batch));
	q->current = q->batch;
	q->current->count = 0;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->given, NULL);
	pthread_cond_init(&q->returned, NULL);
	q->has_thread =
		wants_thread && parallel_count(2) > 1 && parallel_start(&q->thread, pass_all, q);
}

/* The current batch is full. */
static void give_batch(struct chunk_queue *q)
{
	if (!q->has_thread) {
		pass(q, q->current);
	} else {
		pthread_mutex_lock(&q->lock);
		q->filled++;
		/* waking it for each batch would take as long as a part of the work */
		if (q->filled - q->emptied >= CHUNK_BATCHES / 2)
			pthread_cond_signal(&q->given);
		while (q->filled - q->emptied == CHUNK_BATCHES)
			pthread_cond_wait(&q->returned, &q->lock);
		pthread_mutex_unlock(&q->lock);
		q->current = &q->batch[q->filled % CHUNK_BATCHES];
	}
	q->current->count = 0;
}

void chunk_queue_add(struct chunk_queue *q, const struct glibc_chunk *chunk)
{
	struct chunk_batch *b = q->current;

	b->chunk[b->count++] = *chunk;
	if (b->count == CHUNK_BATCH)
		give_batch(q);
}

void chunk_queue_finish(struct chunk_queue *q)
{
	give_batch(q);
	if (q->has_thread) {
		pthread_mutex_lock(&q->lock);
		q->is_ended = true;
		pthread_cond_signal(&q->given);
		pthread_mutex_unlock(&q->lock);
		pthread_join(q->thread, NULL);
	}
	pthread_cond_destroy(&q->given);
	pthread_cond_destroy(&q->returned);
	pthread_mutex_destroy(&q->lock);
	free(q->batch);
}

/*
 * Sums up chunks. A chunk's header is the word before its block, and the block extends over the
 * next chunk's first word, so both are 8 bytes above the chunk's address:
 *
 *	addr + 8    header
 *	addr + 16   block, up to addr + size + 8
 *
 * malloc_trim(0) merges chunks in fastbins with their free neighbours. It returns the whole pages
 * of each free chunk after its first 48 bytes, and those of the main arena's top except for 33
 * bytes (malloc/malloc.c, mtrim and systrim). Other arenas keep their top.
 */

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define WORD 8u
#define FREE_HEADER 48u
#define TOP_KEPT 33u
#define THREAD_MIN (UINT64_C(1) << 20) /* a smaller heap takes less time than starting a thread */

struct heap_adder {
	struct heap_report *report;
	struct chunk_queue queue;
	const struct heap_input *in;
	const struct glibc_heap *heap;
	struct heap_arena *arena;
	struct account *account;
	struct account look;           /* used for counting only */
	struct pinned pinned;
	taddr_t run;                   /* start of the run of adjacent free chunks; 0 = none */
};

static const enum inspect_row row_of_kind[] = {
	[CHUNK_LIVE] = ROW_LIVE, [CHUNK_TCACHE] = ROW_TCACHE, [CHUNK_FASTBIN] = ROW_FASTBIN,
	[CHUNK_UNSORTED] = ROW_UNSORTED, [CHUNK_BIN] = ROW_BIN, [CHUNK_TOP] = ROW_TOP,
	[CHUNK_OWN] = ROW_OWN, [CHUNK_FOREIGN] = ROW_ANONYMOUS,
	[CHUNK_UNKNOWN] = ROW_UNKNOWN_HEAP,
};

/* -- what malloc_trim would return -- */

static void end_run(struct heap_adder *a, taddr_t end)
{
	taddr_t start = ROUND_UP(a->run + FREE_HEADER, PAGE);

	if (a->run && end > start && (end - start) / PAGE > 0)
		inspect_bytes_add(&a->arena->trim, account_count(&a->look, start,
						   start + ROUND_DOWN(end - start, PAGE)));
	a->run = 0;
}

static void end_top(struct heap_adder *a, const struct glibc_chunk *c)
{
	taddr_t start = a->run ? a->run : c->addr, end = c->addr + c->size;

	if (a->arena->is_main && end == a->in->program_break && end - start > TOP_KEPT)
		inspect_bytes_add(&a->arena->trim,
		    account_count(&a->look, end - ROUND_DOWN(end - start - TOP_KEPT, PAGE), end));
	a->run = 0;
}

static void note_run(struct heap_adder *a, const struct glibc_chunk *c)
{
	switch (c->kind) {
	case CHUNK_FASTBIN:
	case CHUNK_UNSORTED:
	case CHUNK_BIN:
		if (!a->run)
			a->run = c->addr;
		break;
	case CHUNK_TOP:
		end_top(a, c);
		break;
	default:
		end_run(a, c->addr);
	}
}

/* -- sums -- */

static void add_free(struct heap_adder *a, const struct glibc_chunk *c, taddr_t end)
{
	struct inspect_bytes b = account_count(&a->look, c->addr + WORD, end);
	enum inspect_row row = row_of_kind[c->kind];

	a->arena->free_bytes[row] += c->size;
	inspect_bytes_add(&a->arena->free, b);
	if (c->kind == CHUNK_TOP)
		inspect_bytes_add(&a->arena->top, b);
	else if (c->size >= HEAP_LARGE)
		inspect_bytes_add(&a->arena->large_free, b);
}

uint32_t heap_report_block(const struct heap_input *in, taddr_t addr, uint64_t usable)
{
	uint32_t type = in->types ? block_types_add(in->types, addr, usable) : 0;

	if (in->types && in->touched) {
		struct cold_bytes *sum = &in->types->list.data[type].untouched;
		struct cold_bytes c = cold_bytes_of(in->touched, &in->types->touched_at, addr,
						    usable);

		sum->cold += c.cold;
		sum->shared += c.shared;
	}

	if (in->holders)
		block_holders_add(in->holders, addr, usable, type,
				  in->types ? in->types->words : 0);
	if (in->block)
		in->block(in->block_ctx, addr, usable, type);
	return type;
}

static void add_live(struct heap_adder *a, const struct glibc_chunk *c, taddr_t end)
{
	taddr_t block = c->addr + GLIBC_HEADER;

	a->arena->live_blocks++;
	a->arena->live_bytes += end - block;
	account_add(a->account, c->addr + WORD, block, ROW_OWN, ROW_OWN);
	const struct pinned_paths *paths = a->in->paths;
	struct pinned_block of = {.size = c->size, .type = c->type};

	if (paths)
		of.path = paths->find(paths->ctx, block);

	pinned_add(&a->pinned, c->addr + WORD, end, &of);
}

/* It is no part of what the arena has. */
static void add_foreign(struct heap_adder *a, taddr_t start, taddr_t end)
{
	struct inspect_bytes b = account_count(&a->look, start, end);

	a->arena->counted.resident -= b.resident;
	a->arena->counted.swapped -= b.swapped;
	pinned_add_foreign(&a->pinned, start, end);
}

static void add_chunk(void *ctx, const struct glibc_chunk *c)
{
	struct heap_adder *a = ctx;
	taddr_t start = c->addr + WORD, end = MIN(c->addr + c->size + WORD, a->heap->end);
	enum inspect_row row = row_of_kind[c->kind];

	note_run(a, c);
	if (c->kind == CHUNK_LIVE) {
		add_live(a, c, end);
		start = c->addr + GLIBC_HEADER;
	} else if (c->kind == CHUNK_OWN) {
		pinned_add(&a->pinned, start, end, NULL);
	} else if (c->kind == CHUNK_UNKNOWN) {
		pinned_add_unknown(&a->pinned, start, end);
	} else if (c->kind == CHUNK_FOREIGN) {
		add_foreign(a, start, end);
	} else {
		add_free(a, c, end);
	}
	account_add(a->account, start, end, row, row);
}

/* Classifies a block while its bytes are at hand; what it adds to is done later. */
static bool note_chunk(void *ctx, const struct glibc_chunk *c)
{
	struct heap_adder *a = ctx;
	struct glibc_chunk known = *c;

	if (c->kind == CHUNK_LIVE)
		known.type = heap_report_block(a->in, c->addr + GLIBC_HEADER, c->size - WORD);
	chunk_queue_add(&a->queue, &known);
	return true;
}

/* Reports a block without counting it. */
static bool pass_chunk(void *ctx, const struct glibc_chunk *c)
{
	const struct heap_input *in = ctx;

	if (c->kind == CHUNK_LIVE)
		heap_report_block(in, c->addr + GLIBC_HEADER, c->size - WORD);
	return true;
}

void heap_report_init(struct heap_report *r, const struct glibc *g, const struct pymalloc *python,
		      struct inspect_memory *memory)
{
	*r = (struct heap_report){.broken_heaps = g->lost_heaps};
	heap_map_init(&r->map, g, python, memory);
	for (size_t i = 0; i < g->arenas.count; i++) {
		const struct glibc_arena *a = &g->arenas.data[i];
		uint64_t found = MIN(a->found_bytes, a->system_bytes);

		*vec_add(&r->arenas) = (struct heap_arena){
			.addr = a->addr, .is_main = a->is_main, .threads = a->threads,
			.system_bytes = a->system_bytes,
			.missing_bytes = a->system_bytes - found};
	}
}

void heap_report_finish(struct heap_report *r, struct block_types *types)
{
	for (size_t i = 0; i < r->type_pages.list.count; i++) {
		types->list.data[i].pages += r->type_pages.list.data[i].pages;
		types->list.data[i].pages_alone += r->type_pages.list.data[i].alone;
	}
	vec_deinit(&r->type_pages.list);
}

void heap_report_deinit(struct heap_report *r)
{
	vec_deinit(&r->type_pages.list);
	vec_deinit(&r->arenas);
	heap_map_deinit(&r->map);
}

void heap_report_add(struct heap_report *r, struct heap_input *in, size_t heap,
		     struct account *account)
{
	const struct glibc_heap *h = &in->glibc->heaps.data[heap];
	struct heap_adder a = {.report = r, .in = in, .heap = h, .account = account,
			  .arena = &r->arenas.data[h->arena]};
	const struct glibc_visitor visitor = {note_chunk, &a, &r->unlisted};
	bool is_large = h->end - h->start >= THREAD_MIN;

	if (in->only_blocks) {
		r->broken_heaps += !glibc_walk(
			in->memory, h, in->lists,
			&(struct glibc_visitor){pass_chunk, in, &r->unlisted});
		return;
	}
	account_init(&a.look, account->pages);
	a.pinned.out = &a.arena->pages;
	a.pinned.classes = r->classes;
	a.pinned.map = &r->map;
	a.pinned.type_pages = in->types ? &r->type_pages : NULL;
	a.pinned.paths = in->paths;
	a.pinned.heap = heap;
	pinned_init(&a.pinned, account->pages, h->map_start, h->end);
	a.arena->heaps++;
	inspect_bytes_add(&a.arena->counted, account_count(&a.look, h->map_start, h->end));
	account_add(account, h->map_start, h->start + WORD, ROW_OWN, ROW_OWN);
	if (h->map_start < h->start)
		pinned_add(&a.pinned, h->map_start, h->start, NULL);
	/* what finds paths is used by this thread alone */
	chunk_queue_start(&a.queue, add_chunk, &a, is_large && !in->paths);
	if (!glibc_walk(in->memory, h, in->lists, &visitor))
		r->broken_heaps++;
	chunk_queue_finish(&a.queue);
	end_run(&a, h->end);
	pinned_finish(&a.pinned);
}

/* Blocks are visited in the order of their addresses, arena by arena. See heap_report.h. */

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
	vec_sort(&v->out->pins, compare_pins);
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
	const struct addr_range *a = &v->pymalloc->arenas.data[v->arena];
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
