/*
 * Words become edges in one pass, in ascending order: those of a block are contiguous, those of
 * owners are kept aside and sorted afterwards. Then blocks are made smaller.
 */
#include "graph/graph_build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/text.h"

#define OWNERS_EXPECTED 100000u

/* A word of an owner. */
struct owner_word {
	uint32_t owner, edge;
	uint32_t place;
};

struct graph_builder {
	struct block_holders *holders;
	const struct graph_namer *namer;
	struct heap_graph *graph;
	size_t edges;
	uint32_t at;            /* the first block that does not end before the word */
	size_t global;          /* the first variable of a module that is not before the word */
	HASH(uint32_t) by_key;  /* indexes of owners */
	VEC(struct owner_word) words;
	/* the last word of data: what it is part of */
	struct graph_data data;
	uint32_t data_owner;    /* index + 1; 0 = there was none */
};

/* -- blocks -- */

/* Of two that overlap, which no sound heap has, the first one stays. */
static void drop_overlapping(struct block_holders *h, struct heap_graph *g)
{
	struct leakcheck_block *block = h->blocks.data;
	size_t kept = 0;

	for (size_t i = 0; i < h->blocks.count; i++) {
		if (kept > 0 && leakcheck_block_end(&block[kept - 1]) > block[i].addr) {
			g->overlapping++;
			continue;
		}
		block[kept++] = block[i];
	}
	h->blocks.count = kept;
}

#define RELEASED_AT_ONCE (UINT32_C(1) << 16)

/* Gives back the pages of [@begin, @end) of @block, but for those that others are on, too. */
static void release_blocks(struct leakcheck_block *block, size_t begin, size_t end)
{
	uintptr_t start = ROUND_UP((uintptr_t)&block[begin], (uintptr_t)PAGE_SIZE_MIN);
	uintptr_t stop = ROUND_DOWN((uintptr_t)&block[end], (uintptr_t)PAGE_SIZE_MIN);

	if (start < stop)
		madvise((void *)start, stop - start, MADV_DONTNEED);
}

/* Into huge pages, since most later reads are of one block here and one there. */
static void make_small(struct graph_builder *b)
{
	struct block_holders *h = b->holders;
	struct heap_graph *g = b->graph;

	g->blocks = (uint32_t)h->blocks.count;
	g->block = huge_alloc(graph_block_bytes(g));
	for (uint32_t i = 0; i < g->blocks; i++) {
		const struct leakcheck_block *from = &h->blocks.data[i];

		g->block[i] = (struct graph_block){
			.addr = from->addr, .type = MIN(from->leaf, GRAPH_TYPE_MAX),
			.size = from->size}; /* it ends within BLOCK_INDEX_ADDRESS_BITS */
		g->bytes += from->size;
		if (i % RELEASED_AT_ONCE == 0 && i > 0)
			release_blocks(h->blocks.data, i - RELEASED_AT_ONCE, i);
	}
	vec_deinit(&h->blocks);
}

/* -- owners -- */

static uint32_t get_owner(struct graph_builder *b, const struct graph_owner *wanted)
{
	const struct graph_owner *list = b->graph->owners.data;
	uint64_t hash = hash_u64(wanted->addr + (uint64_t)wanted->tid * 8 + wanted->kind);
	const uint32_t *known =
		hash_find(&b->by_key, hash, i,
			  list[*i].kind == wanted->kind && list[*i].addr == wanted->addr &&
				  list[*i].tid == wanted->tid);

	if (known)
		return *known;
	struct graph_owner *o = vec_add(&b->graph->owners);

	*o = *wanted;
	return *hash_add(&b->by_key, hash) = (uint32_t)b->graph->owners.count - 1;
}

/* A frame is one owner each time that its function is on the stack. */
static uint32_t find_stack(struct graph_builder *b, taddr_t addr, pid_t tid, taddr_t *start_out)
{
	const struct block_holders *h = b->holders;
	size_t n = vec_search(&h->frames, f, f->start <= addr);
	uint32_t stack = get_owner(b, &(struct graph_owner){.kind = OWNER_STACK, .tid = tid});

	*start_out = 0;
	/* the end of the outermost frame is not known */
	if (n == 0 || n == h->frames.count || h->frames.data[n - 1].tid != tid ||
	    h->frames.data[n].tid != tid)
		return stack;
	*start_out = h->frames.data[n - 1].start;
	return get_owner(b, &(struct graph_owner){.kind = OWNER_FRAME, .tid = tid,
						  .under = stack + 1,
						  .addr = h->frames.data[n - 1].start});
}

static uint32_t find_data(struct graph_builder *b, taddr_t addr)
{
	if (b->data_owner && addr >= b->data.start && addr < b->data.end)
		return b->data_owner - 1;
	if (!b->namer->data(b->namer->ctx, addr, &b->data) || addr < b->data.start)
		b->data = (struct graph_data){.first = addr, .start = addr, .end = addr};
	b->data_owner = 1 + get_owner(b, &(struct graph_owner){
		.kind = b->data.is_variable ? OWNER_VARIABLE : OWNER_SECTION,
		.addr = b->data.first, .word = addr});
	return b->data_owner - 1;
}

/* A variable of a thread, or all of the thread's whose names are not known. */
static uint32_t find_thread_data(struct graph_builder *b, taddr_t addr, pid_t tid,
				 taddr_t *start_out)
{
	struct graph_data d;

	if (!b->namer->data(b->namer->ctx, addr, &d) || !d.is_variable)
		return get_owner(b, &(struct graph_owner){.kind = OWNER_TLS, .tid = tid});
	*start_out = d.first;
	return get_owner(b, &(struct graph_owner){.kind = OWNER_TLS, .tid = tid, .addr = d.first,
						  .word = addr});
}

static uint32_t find_mapping(struct graph_builder *b, taddr_t addr, taddr_t *start_out)
{
	const struct holder_map *m = vec_find(&b->holders->maps, addr);

	*start_out = m ? m->start : addr;
	return get_owner(b, &(struct graph_owner){.kind = OWNER_MAPPING, .addr = *start_out});
}

static uint32_t place_of(uint64_t bytes)
{
	return (uint32_t)MIN(bytes / sizeof(uint64_t), (uint64_t)GRAPH_FAR);
}

/* musl has the variables of a thread at the end of its stack. */
static bool is_variable(const struct graph_builder *b, taddr_t addr)
{
	struct graph_data d;

	return b->namer->data(b->namer->ctx, addr, &d) && d.is_variable;
}

/* The word at @addr, in no block, is @edge. */
static void pass_owner_word(struct graph_builder *b, taddr_t addr, uint32_t edge)
{
	struct holder_place place;
	taddr_t start = 0;
	uint32_t owner;

	if (!block_holders_place(b->holders, addr, &place))
		return;
	if (place.kind == HOLDER_VARIABLE) {
		owner = find_data(b, addr);
		start = b->data.first;
	} else if (place.kind == HOLDER_STACK && !is_variable(b, addr)) {
		owner = find_stack(b, addr, place.tid, &start);
	} else if (place.kind == HOLDER_STACK || place.kind == HOLDER_TLS) {
		owner = find_thread_data(b, addr, place.tid, &start);
	} else {
		owner = find_mapping(b, addr, &start);
	}
	*vec_add(&b->words) =
		(struct owner_word){owner, edge, start ? place_of(addr - start) : GRAPH_FAR};
}

/* -- words -- */

#define NO_EDGE UINT32_MAX

/* The edge that @word makes; NO_EDGE if it leads to no block. @place: in the index. */
static uint32_t find_edge(const struct graph_builder *b, uint64_t place, uint64_t word)
{
	bool is_start;
	uint32_t to = block_index_at(&b->graph->index, place, word, &is_start);

	if (to == BLOCK_INDEX_NONE || !block_holders_refers(b->holders, to, word))
		return NO_EDGE;
	return to << 1 | (is_start ? 0 : GRAPH_IS_INTERIOR);
}

static void add_edge(struct graph_builder *b, uint32_t edge, uint32_t place)
{
	if (b->graph->place)
		b->graph->place[b->edges] = place;
	b->graph->edge[b->edges++] = edge;
}

/* Whether the word at @addr is a variable of a module: then @edge is its. */
static bool pass_global(struct graph_builder *b, taddr_t addr, uint32_t edge)
{
	const struct block_holders *h = b->holders;

	while (b->global < h->globals.count && h->globals.data[b->global].word < addr)
		b->global++;
	if (b->global == h->globals.count || h->globals.data[b->global].word != addr)
		return false;
	uint32_t owner = get_owner(b, &(struct graph_owner){
		.kind = OWNER_GLOBAL, .addr = addr, .word = addr});

	*vec_add(&b->words) = (struct owner_word){owner, edge, 0};
	return true;
}

/* Whether word @place of @b keeps nothing alive: the last of its header are the collector's. */
static bool is_weak(const struct block_holders *h, const struct leakcheck_block *b, uint32_t place)
{
	uint32_t header = (b->leaf < h->headers.count ? h->headers.data[b->leaf] : 0) / 8;

	return (b->time && place >= b->time - 1) || (place < header && place + 2 >= header) ||
	       (b->leaf < h->weak.count &&
		((place && place == h->weak.data[b->leaf].word) ||
		 place < h->weak.data[b->leaf].before));
}

static void pass_edge(struct graph_builder *b, taddr_t addr, uint32_t edge)
{
	const struct leakcheck_block *block = b->holders->blocks.data;
	struct heap_graph *g = b->graph;
	uint32_t count = (uint32_t)b->holders->blocks.count;

	while (b->at < count && leakcheck_block_end(&block[b->at]) <= addr)
		g->first[++b->at] = (uint32_t)b->edges;
	if (b->at == count || block[b->at].addr > addr) {
		pass_owner_word(b, addr, edge);
		return;
	}
	uint32_t place = place_of(addr - block[b->at].addr);

	if (edge >> 1 != b->at && !is_weak(b->holders, &block[b->at], place) &&
	    !pass_global(b, addr, edge))
		add_edge(b, edge, place);
}

/* All look-ups of a page are started before the first is completed: their cache misses overlap. */
static void pass_page(struct graph_builder *b, const struct pointer_page *page,
		      const uint64_t *value)
{
	uint64_t place[PAGE_WORDS];
	size_t v = 0;

	for (uint32_t i = 0; i < page->count; i++)
		place[i] = block_index_place(&b->graph->index, value[i]);
	for (size_t k = 0; k < ARRAY_SIZE(page->mask); k++)
		for (uint64_t mask = page->mask[k]; mask; mask &= mask - 1, v++) {
			uint64_t word = k * 64 + (uint64_t)__builtin_ctzll(mask);
			uint32_t edge = find_edge(b, place[v], value[v]);

			if (edge != NO_EDGE)
				pass_edge(b, page->addr + word * sizeof(uint64_t), edge);
		}
}

static void pass_words(struct graph_builder *b)
{
	struct heap_graph *g = b->graph;
	uint32_t count = (uint32_t)b->holders->blocks.count;
	struct pointer_page page;
	uint64_t value[PAGE_WORDS];

	g->first_room = (size_t)count + OWNERS_EXPECTED;
	g->first = huge_alloc(g->first_room * sizeof(*g->first));
	while (pointer_scan_take(&b->holders->scan, &page, value))
		pass_page(b, &page, value);
	while (b->at < count)
		g->first[++b->at] = (uint32_t)b->edges;
}

static void pass_registers(struct graph_builder *b)
{
	const struct block_holders *h = b->holders;

	for (size_t i = 0; i < h->registers.count; i++) {
		uint64_t word = h->registers.data[i];
		uint32_t edge = find_edge(b, block_index_place(&b->graph->index, word), word);

		if (edge == NO_EDGE)
			continue;
		uint32_t owner = get_owner(b, &(struct graph_owner){.kind = OWNER_REGISTERS});

		*vec_add(&b->words) = (struct owner_word){owner, edge, GRAPH_FAR};
	}
}

/* -- the edges of owners -- */

static int compare_words(const void *a, const void *b)
{
	const struct owner_word *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	return x->edge < y->edge ? -1 : x->edge > y->edge;
}

/* Seldom: there are more owners than expected. */
static void grow_first(struct heap_graph *g, size_t room)
{
	if (room <= g->first_room)
		return;
	uint32_t *first = huge_alloc(room * sizeof(*first));

	memcpy(first, g->first, ((size_t)g->blocks + 1) * sizeof(*first));
	huge_free(g->first, g->first_room * sizeof(*first));
	g->first = first;
	g->first_room = room;
}

static void add_owner_edges(struct graph_builder *b)
{
	struct heap_graph *g = b->graph;
	uint32_t nodes = graph_nodes(g);
	size_t at = 0;

	vec_sort(&b->words, compare_words);
	grow_first(g, (size_t)nodes + 2);
	for (uint32_t i = 0; i < g->owners.count; i++) {
		for (; at < b->words.count && b->words.data[at].owner == i; at++) {
			add_edge(b, b->words.data[at].edge, b->words.data[at].place);
		}
		g->first[g->blocks + i + 1] = (uint32_t)b->edges;
	}
	vec_deinit(&b->words);
}

/* The file of an interpreter, not of a module for it. */
static bool is_python(const char *object)
{
	return object && (text_begins_with(object, "python") ||
			  text_begins_with(object, "libpython"));
}

/* Frames are known by their stack pointers up to here: then by their code. */
static void name_owner(const struct graph_builder *b, struct graph_owner *o)
{
	const struct block_holders *h = b->holders;

	if (o->kind == OWNER_FRAME) {
		size_t n = vec_search(&h->frames, f, f->start < o->addr);

		o->addr = h->frames.data[n].pc;
	}
	if (o->kind == OWNER_GLOBAL) {
		size_t n = vec_search(&h->globals, g, g->word < o->addr);

		o->name = xstrdup(h->globals.data[n].name);
	} else if (o->kind == OWNER_MAPPING) {
		const struct holder_map *m = vec_find(&h->maps, o->addr);

		o->name = m && *m->path ? text_clean(m->path, strlen(m->path)) : NULL;
	} else if (o->kind == OWNER_VARIABLE || o->kind == OWNER_SECTION ||
		   o->kind == OWNER_FRAME || (o->kind == OWNER_TLS && o->addr)) {
		b->namer->name(b->namer->ctx, o);
	}
	bool is_data = o->kind == OWNER_VARIABLE || o->kind == OWNER_SECTION;

	/* among what has no name is the state of the thread: its frames */
	if (h->globals.count > 0 && ((is_data && is_python(o->object)) ||
				     (o->kind == OWNER_TLS && !o->addr)))
		o->kind = OWNER_INTERPRETER;
}

static bool build(struct graph_builder *b)
{
	struct block_holders *h = b->holders;
	struct heap_graph *g = b->graph;

	block_order_sort(h->blocks.data, h->blocks.count);
	drop_overlapping(h, g);
	g->edge_room = h->scan.values + h->registers.count + 1;
	if (h->blocks.count >= GRAPH_BLOCKS_MAX || g->edge_room >= UINT32_MAX)
		return false;
	g->edge = huge_alloc(g->edge_room * sizeof(*g->edge));
	if (g->keeps_edges && !g->drops_places)
		g->place = huge_alloc(g->edge_room * sizeof(*g->place));
	block_index_init(&g->index, h->blocks.data, (uint32_t)h->blocks.count);
	pass_words(b);
	pass_registers(b);
	make_small(b);
	block_index_move(&g->index, g->block, sizeof(*g->block));
	add_owner_edges(b);
	for (size_t i = 0; i < g->owners.count; i++)
		name_owner(b, &g->owners.data[i]);
	return true;
}

bool graph_build(struct block_holders *h, const struct graph_namer *namer, struct heap_graph *g)
{
	struct graph_builder b = {.holders = h, .namer = namer, .graph = g};
	bool is_built = build(&b);

	hash_deinit(&b.by_key);
	block_holders_forget(h);
	return is_built;
}
