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
#include "inspect/heap_report.h"

#include <string.h>

#include "inspect/chunk_queue.h"

#define PAGE ((taddr_t)PAGE_SIZE_MIN)
#define WORD 8u
#define FREE_HEADER 48u
#define TOP_KEPT 33u
#define THREAD_MIN (UINT64_C(1) << 20) /* a smaller heap takes less time than starting a thread */

struct adder {
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

static void sum(struct inspect_bytes *to, struct inspect_bytes b)
{
	to->resident += b.resident;
	to->swapped += b.swapped;
}

/* -- what malloc_trim would return -- */

static void end_run(struct adder *a, taddr_t end)
{
	taddr_t start = ROUND_UP(a->run + FREE_HEADER, PAGE);

	if (a->run && end > start && (end - start) / PAGE > 0)
		sum(&a->arena->trim, account_count(&a->look, start,
						   start + ROUND_DOWN(end - start, PAGE)));
	a->run = 0;
}

static void end_top(struct adder *a, const struct glibc_chunk *c)
{
	taddr_t start = a->run ? a->run : c->addr, end = c->addr + c->size;

	if (a->arena->is_main && end == a->in->program_break && end - start > TOP_KEPT)
		sum(&a->arena->trim,
		    account_count(&a->look, end - ROUND_DOWN(end - start - TOP_KEPT, PAGE), end));
	a->run = 0;
}

static void note_run(struct adder *a, const struct glibc_chunk *c)
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

static void add_free(struct adder *a, const struct glibc_chunk *c, taddr_t end)
{
	struct inspect_bytes b = account_count(&a->look, c->addr + WORD, end);
	enum inspect_row row = row_of_kind[c->kind];

	a->arena->free_bytes[row] += c->size;
	sum(&a->arena->free, b);
	if (c->kind == CHUNK_TOP)
		sum(&a->arena->top, b);
	else if (c->size >= HEAP_LARGE)
		sum(&a->arena->large_free, b);
}

uint32_t heap_report_block(const struct heap_input *in, taddr_t addr, uint64_t usable)
{
	uint32_t type = in->types ? block_types_add(in->types, addr, usable) : 0;

	if (in->holders)
		block_holders_add(in->holders, addr, usable, type);
	if (in->block)
		in->block(in->block_ctx, addr, usable, type);
	return type;
}

static void add_live(struct adder *a, const struct glibc_chunk *c, taddr_t end)
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
static void add_foreign(struct adder *a, taddr_t start, taddr_t end)
{
	struct inspect_bytes b = account_count(&a->look, start, end);

	a->arena->counted.resident -= b.resident;
	a->arena->counted.swapped -= b.swapped;
	pinned_add_foreign(&a->pinned, start, end);
}

static void add_chunk(void *ctx, const struct glibc_chunk *c)
{
	struct adder *a = ctx;
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
	struct adder *a = ctx;
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

static void pass_blocks(struct heap_report *r, struct heap_input *in, const struct glibc_heap *h)
{
	const struct glibc_visitor visitor = {pass_chunk, in, &r->unlisted};

	if (!glibc_walk(in->memory, h, in->lists, &visitor))
		r->broken_heaps++;
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
	for (size_t i = 0; i < r->type_pages.list.count; i++)
		types->list.data[i].pages += r->type_pages.list.data[i];
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
	struct adder a = {.report = r, .in = in, .heap = h, .account = account,
			  .arena = &r->arenas.data[h->arena]};
	const struct glibc_visitor visitor = {note_chunk, &a, &r->unlisted};
	bool is_large = h->end - h->start >= THREAD_MIN;

	if (in->only_blocks) {
		pass_blocks(r, in, h);
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
	sum(&a.arena->counted, account_count(&a.look, h->map_start, h->end));
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
