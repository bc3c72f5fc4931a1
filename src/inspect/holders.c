/*
 * Blocks get the best holder among all words that point into them, looked up after the process was
 * resumed.
 */
#include "inspect/holders.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "leak/block_index.h"

const char *const holder_kind_name[HOLDER_KINDS] = {
	[HOLDER_VARIABLE] = "variable", [HOLDER_TLS] = "tls", [HOLDER_STACK] = "stack",
	[HOLDER_REGISTER] = "register", [HOLDER_BLOCK] = "block", [HOLDER_MAPPING] = "mapping",
	[HOLDER_NOTHING] = "nothing",
};

/* Something that holds blocks. Number 0 is nothing. */
struct holder_source {
	enum holder_kind kind;
	uint64_t key;
};

struct holder_search {
	struct block_holders *holders;
	struct block_index index;
	VEC(struct holder_source) sources;
	HASH(uint32_t) by_key;  /* numbers of sources */
	size_t at;              /* the first block that does not end before the word */
	holder_variable_fn *variable;
	void *ctx;
};

void block_holders_init(struct block_holders *h)
{
	*h = (struct block_holders){0};
	pointer_scan_init(&h->scan);
}

void block_holders_forget(struct block_holders *h)
{
	vec_deinit(&h->headers);
	vec_deinit(&h->weak);
	vec_release(&h->globals, g, free(g->name));
	vec_deinit(&h->blocks);
	vec_deinit(&h->threads);
	vec_deinit(&h->frames);
	vec_release(&h->maps, m, free(m->path));
	vec_deinit(&h->objects);
	vec_deinit(&h->own);
	spans_deinit(&h->spans);
	if (h->scan.near)
		pointer_scan_deinit(&h->scan);
}

void block_holders_deinit(struct block_holders *h)
{
	block_holders_forget(h);
	for (size_t i = 0; i < h->list.count; i++) {
		free(h->list.data[i].name);
		free(h->list.data[i].object);
	}
	vec_deinit(&h->list);
	vec_deinit(&h->registers);
}

void block_holders_set_header(struct block_holders *h, uint32_t type, uint32_t header)
{
	while (h->headers.count <= type)
		*vec_add(&h->headers) = 0;
	h->headers.data[type] = header;
}

void block_holders_set_weak(struct block_holders *h, uint32_t type, struct holder_weak weak)
{
	while (h->weak.count <= type)
		*vec_add(&h->weak) = (struct holder_weak){0};
	h->weak.data[type] = weak;
}

void block_holders_add(struct block_holders *h, taddr_t addr, uint64_t usable, uint32_t type,
		       uint32_t words)
{
	const struct leakcheck_block b = {
		.addr = addr, .size = MIN(usable, LEAKCHECK_SIZE_MAX), .leaf = type, .time = words};

	if (addr == 0 || leakcheck_block_end(&b) > UINT64_C(1) << BLOCK_INDEX_ADDRESS_BITS)
		return;
	*vec_add(&h->blocks) = b;
	pointer_scan_add_target(&h->scan, addr, leakcheck_block_end(&b));
}

void block_holders_scan(struct block_holders *h, const struct resident *pages,
			memory_read_fn *read, void *ctx)
{
	for (size_t i = 0; i < pages->list.count; i++) {
		const struct page_run *r = &pages->list.data[i];
		const struct map *m = maps_find(&pages->maps, r->start);

		if (!m || !m->is_write)
			continue;
		pointer_scan_add_range(&h->scan, r->start, r->end);
		if (h->maps.count == 0 || h->maps.data[h->maps.count - 1].start != m->start)
			*vec_add(&h->maps) =
				(struct holder_map){m->start, m->end, xstrdup(m->path)};
	}
	pointer_scan_run(&h->scan, read, ctx);
}

/* -- sources -- */

static uint32_t get_source(struct holder_search *s, enum holder_kind kind, uint64_t key)
{
	const struct holder_source *e = s->sources.data;
	const uint32_t *known = hash_find(&s->by_key, hash_u64(key + kind), i,
					  e[*i].kind == kind && e[*i].key == key);

	if (known)
		return *known;
	*vec_add(&s->sources) = (struct holder_source){kind, key};
	return *hash_add(&s->by_key, hash_u64(key + kind)) = (uint32_t)s->sources.count - 1;
}

static bool is_in_thread(const struct block_holders *h, taddr_t addr, struct holder_place *out)
{
	for (size_t i = 0; i < h->threads.count; i++) {
		const struct holder_thread *th = &h->threads.data[i];
		bool is_tls = addr >= th->tls && addr < th->tls_end;

		if (!is_tls && !(addr >= th->stack && addr < th->stack_end))
			continue;
		*out = (struct holder_place){is_tls ? HOLDER_TLS : HOLDER_STACK, th->tid};
		return true;
	}
	return false;
}

bool block_holders_place(const struct block_holders *h, taddr_t addr, struct holder_place *out)
{
	size_t i = spans_find(&h->spans, addr);
	const struct span *span = i < h->spans.list.count ? &h->spans.list.data[i] : NULL;

	if (span && span->start <= addr)
		return (span->row == ROW_STACK || span->row == ROW_TLS) &&
		       is_in_thread(h, addr, out);
	for (size_t k = 0; k < h->own.count; k++)
		if (addr >= h->own.data[k].start && addr < h->own.data[k].end)
			return false;
	*out = (struct holder_place){
		.kind = vec_find(&h->objects, addr) ? HOLDER_VARIABLE : HOLDER_MAPPING};
	return true;
}

/* What has the word at @addr, which is in no block: a source. False: nothing in use. */
static bool find_source(struct holder_search *s, taddr_t addr, uint32_t *source_out)
{
	struct holder_place place;

	if (!block_holders_place(s->holders, addr, &place))
		return false;
	*source_out = get_source(s, place.kind, place.kind == HOLDER_VARIABLE ?
						s->variable(s->ctx, addr) : (uint64_t)place.tid);
	return true;
}

/* -- words -- */

static void hold(struct holder_search *s, uint32_t block, uint32_t source)
{
	struct leakcheck_block *b = &s->holders->blocks.data[block];
	const struct holder_source *old = &s->sources.data[b->time];

	if (s->sources.data[source].kind < old->kind)
		b->time = source;
}

/* The block that @value refers to; BLOCK_INDEX_NONE if there is none. */
static uint32_t find_block(const struct holder_search *s, uint64_t value)
{
	bool is_start;
	uint32_t to = block_index_find(&s->index, value, &is_start);
	bool refers = to != BLOCK_INDEX_NONE && block_holders_refers(s->holders, to, value);

	return refers ? to : BLOCK_INDEX_NONE;
}

/* The word at @addr, in ascending order, leads to @value. */
static void pass_word(struct holder_search *s, taddr_t addr, uint64_t value)
{
	const struct block_holders *h = s->holders;
	uint32_t to = find_block(s, value), source;

	if (to == BLOCK_INDEX_NONE)
		return;
	while (s->at < h->blocks.count && leakcheck_block_end(&h->blocks.data[s->at]) <= addr)
		s->at++;
	if (s->at < h->blocks.count && h->blocks.data[s->at].addr <= addr) {
		if (s->at != to)
			hold(s, to, get_source(s, HOLDER_BLOCK, h->blocks.data[s->at].leaf));
	} else if (find_source(s, addr, &source)) {
		hold(s, to, source);
	}
}

static void pass_words(struct holder_search *s)
{
	struct block_holders *h = s->holders;
	struct pointer_page page;
	uint64_t value[PAGE_WORDS];

	while (pointer_scan_take(&h->scan, &page, value)) {
		size_t v = 0;

		for (size_t k = 0; k < ARRAY_SIZE(page.mask); k++)
			for (uint64_t mask = page.mask[k]; mask; mask &= mask - 1, v++) {
				uint64_t word = k * 64 + (uint64_t)__builtin_ctzll(mask);

				pass_word(s, page.addr + word * sizeof(uint64_t), value[v]);
			}
	}
	for (size_t i = 0; i < h->registers.count; i++) {
		uint32_t to = find_block(s, h->registers.data[i]);

		if (to != BLOCK_INDEX_NONE)
			hold(s, to, get_source(s, HOLDER_REGISTER, 0));
	}
}

/* -- sums -- */

static int compare_blocks(const void *a, const void *b)
{
	const struct leakcheck_block *x = a, *y = b;

	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

static int compare_holders(const void *a, const void *b)
{
	const struct block_holder *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

static void add_up(struct holder_search *s)
{
	struct block_holders *h = s->holders;
	struct block_holder *last = NULL;

	qsort(h->blocks.data, h->blocks.count, sizeof(*h->blocks.data), compare_blocks);
	for (size_t i = 0; i < h->blocks.count; i++) {
		const struct leakcheck_block *b = &h->blocks.data[i];
		const struct holder_source *from = &s->sources.data[b->time];

		if (i == 0 || compare_blocks(b - 1, b) != 0) {
			last = vec_add(&h->list);
			*last = (struct block_holder){
				.type = b->leaf, .kind = from->kind, .key = from->key};
		}
		last->blocks++;
		last->bytes += b->size;
	}
	vec_sort(&h->list, compare_holders);
}

void block_holders_find(struct block_holders *h, holder_variable_fn *variable, void *ctx)
{
	struct holder_search s = {.holders = h, .variable = variable, .ctx = ctx};

	if (h->blocks.count == 0 || h->blocks.count >= UINT32_C(1) << 31)
		return;
	get_source(&s, HOLDER_NOTHING, 0); /* number 0 */
	block_order_sort(h->blocks.data, h->blocks.count);
	block_index_init(&s.index, h->blocks.data, (uint32_t)h->blocks.count);
	pass_words(&s);
	block_index_deinit(&s.index);
	add_up(&s);
	block_holders_forget(h);
	vec_deinit(&s.sources);
	hash_deinit(&s.by_key);
}
