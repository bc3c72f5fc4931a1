/*
 * Sites of live blocks. Counting a block takes one hash look-up by the path of its leaf's node in the
 * report tree. To merge recursion, names of functions are looked up for each path, from the symbol
 * tables alone; files and lines only when a site is written.
 */
#include "output/leaks.h"

#include <string.h>

#include "output/leaks_internal.h"

const char *const leak_kind_text[LEAK_KIND_COUNT] = {
	"still allocated", "definitely lost", "indirectly lost", "possibly lost", "still reachable",
};

void leaks_init(struct leaks *l, const struct report *report, uint32_t now, uint32_t minimum_age)
{
	*l = (struct leaks){
		.report = report, .now = now, .minimum_age = minimum_age, .slot_bits = 8,
		.shown_kinds = UINT32_MAX};
	l->tree = report_tree_new(report);
	l->slot = xcalloc((size_t)1 << l->slot_bits, sizeof(*l->slot));
}

void leaks_deinit(struct leaks *l)
{
	report_tree_free(l->tree);
	vec_deinit(&l->sites);
	vec_deinit(&l->suppressed);
	vec_deinit(&l->path);
	vec_deinit(&l->function);
	free(l->slot);
	l->slot = NULL;
}

/* -- paths without recursion -- */

#define PERIOD_MAX 4u /* functions that call each other in turn */

/* A number for the function of @frame: calls at different places of it have the same. */
static uint64_t function_of(struct leaks *l, uint32_t frame)
{
	while (l->function.count <= frame)
		*vec_add(&l->function) = 0;
	if (l->function.data[frame])
		return l->function.data[frame];
	const struct symbol *symbol = l->report->symbol(l->report->symbol_ctx, frame, SYMBOL_REAL);
	const char *name = symbol->frame[symbol->count - 1].name;
	uint64_t hash = hash_u64(frame);

	if (name)
		hash = hash_bytes(name, strlen(name)) ^
		       hash_u64(symbol->object ? hash_bytes(symbol->object,
							    strlen(symbol->object)) : 0);
	l->function.data[frame] = hash ? hash : 1;
	return l->function.data[frame];
}

/* Whether the last @period frames are calls of the same functions as the ones inside them. */
static bool repeats(struct leaks *l, const struct leak_frames *f, size_t period)
{
	if (f->list.count < 2 * period)
		return false;
	for (size_t i = f->list.count - period; i < f->list.count; i++)
		if (function_of(l, f->list.data[i]) != function_of(l, f->list.data[i - period]))
			return false;
	return true;
}

/* The frames of the path that ends at @node, innermost first, without recursion. */
static void list_frames(struct leaks *l, uint32_t node, struct leak_frames *out)
{
	struct leak_frames all = {0};

	out->list.count = 0;
	for (; node; node = report_tree_node(l->tree, node)->parent)
		*vec_add(&all.list) = report_tree_node(l->tree, node)->frame;
	while (all.list.count > 0) {
		*vec_add(&out->list) = all.list.data[--all.list.count];
		for (size_t period = 1; period <= PERIOD_MAX; period++)
			if (repeats(l, out, period))
				out->list.count -= period;
	}
	vec_deinit(&all.list);
}

/* Equal for paths that differ in recursion only. */
static uint64_t path_of(struct leaks *l, uint32_t node)
{
	struct leak_frames frames = {0};
	uint64_t hash = 1;

	while (l->path.count <= node)
		*vec_add(&l->path) = 0;
	if (l->path.data[node])
		return l->path.data[node];
	list_frames(l, node, &frames);
	for (size_t i = 0; i < frames.list.count; i++)
		hash = hash_u64(hash ^ frames.list.data[i]);
	vec_deinit(&frames.list);
	l->path.data[node] = hash ? hash : 1;
	return l->path.data[node];
}

/* -- suppressions -- */

void leaks_list_stack(struct leaks *l, uint32_t node, struct leak_stack *out)
{
	struct leak_frames frames = {0};

	list_frames(l, node, &frames);
	for (size_t i = 0; i < frames.list.count; i++) {
		const struct symbol *s = l->report->symbol(l->report->symbol_ctx, frames.list.data[i],
							   SYMBOL_ALL);

		for (uint32_t k = 0; k < s->count; k++)
			*vec_add(&out->list) = (struct suppression_frame){
				s->frame[k].name, k + 1 == s->count ? s->raw : NULL, s->object};
	}
	vec_deinit(&frames.list);
}

/* 1 + the number of the suppression for leaks of @kind with the path @node; 0 = none. */
static uint32_t find_suppression(struct leaks *l, uint32_t node, enum leak_kind kind)
{
	struct leak_stack stack = {0};
	uint32_t found = 0;

	if (!l->suppressions || kind == LEAK_UNCHECKED)
		return 0;
	leaks_list_stack(l, node, &stack);
	bool is_known = suppressions_match(l->suppressions, kind - LEAK_DEFINITE, stack.list.data,
					   stack.list.count, &found);

	vec_deinit(&stack.list);
	return is_known ? found + 1 : 0;
}

/* -- sites -- */

static uint32_t *find_slot(struct leaks *l, uint64_t path, enum leak_kind kind)
{
	uint32_t mask = (1u << l->slot_bits) - 1;
	uint32_t i = (uint32_t)hash_u64(path ^ (uint64_t)kind << 56) & mask;

	for (; l->slot[i]; i = (i + 1) & mask) {
		const struct leak_site *s = &l->sites.data[l->slot[i] - 1];

		if (s->path == path && s->kind == kind)
			break;
	}
	return &l->slot[i];
}

static void grow_slots(struct leaks *l)
{
	if (l->sites.count + 1 < 1u << (l->slot_bits - 1))
		return;
	free(l->slot);
	l->slot_bits++;
	l->slot = xcalloc((size_t)1 << l->slot_bits, sizeof(*l->slot));
	for (size_t i = 0; i < l->sites.count; i++)
		*find_slot(l, l->sites.data[i].path, l->sites.data[i].kind) = (uint32_t)i + 1;
}

/* The site of @block, created if it is new. */
static struct leak_site *get_site(struct leaks *l, const struct block *block, uint32_t node,
				  enum leak_kind kind)
{
	uint64_t path = path_of(l, node);

	grow_slots(l);
	uint32_t *slot = find_slot(l, path, kind);

	if (!*slot) {
		uint32_t suppression = find_suppression(l, node, kind);

		*vec_add(&l->sites) = (struct leak_site){
			.node = node,
			.id = (uint32_t)l->sites.count - 1,
			.path = path,
			.first_leaf = report_tree_node(l->tree, node)->first_leaf,
			.kind = (uint8_t)kind,
			.suppression = suppression,
			.oldest = block->time,
			.youngest = block->time,
		};
		*slot = (uint32_t)l->sites.count;
	}
	return &l->sites.data[*slot - 1];
}

static void add_weight(struct leak_sum *s, const struct weight *w)
{
	s->bytes += w->bytes;
	s->blocks += w->blocks;
	s->variance += w->variance;
}

/* Where blocks of @suppression are counted. */
static struct leak_sum *suppressed_by(struct leaks *l, uint32_t suppression)
{
	while (l->suppressed.count < suppression)
		*vec_add(&l->suppressed) = (struct leak_sum){0};
	return &l->suppressed.data[suppression - 1];
}

static bool is_too_young(const struct leaks *l, const struct block *block)
{
	return (l->now > block->time ? l->now - block->time : 0) < l->minimum_age;
}

/* Counts @block at the site of its path, or where that is left out. */
static struct leak_site *count_block(struct leaks *l, const struct block *block, uint32_t node,
				     enum leak_kind kind)
{
	struct weight w = profile_block_weight(l->report->profile, block);
	struct leak_site *s = get_site(l, block, node, kind);

	if (s->suppression) {
		add_weight(suppressed_by(l, s->suppression), &w);
		return NULL;
	}
	s->bytes += w.bytes;
	s->blocks += w.blocks;
	s->variance += w.variance;
	s->oldest = MIN(s->oldest, block->time);
	s->youngest = MAX(s->youngest, block->time);
	add_weight(&l->sum[kind], &w);
	return s;
}

uint32_t leaks_add(struct leaks *l, const struct block *block, enum leak_kind kind)
{
	uint32_t node = report_tree_leaf_node(l->tree, block->leaf);

	if (node == REPORT_NODE_IGNORED)
		return LEAK_NO_SITE;
	if (is_too_young(l, block)) {
		struct weight w = profile_block_weight(l->report->profile, block);

		add_weight(&l->younger, &w);
		return LEAK_NO_SITE;
	}
	const struct leak_site *s = count_block(l, block, node, kind);

	return s ? s->id : LEAK_NO_SITE;
}

void leaks_add_follower(struct leaks *l, const struct block *block, const struct block *leader)
{
	uint32_t node = report_tree_leaf_node(l->tree, block->leaf);
	uint32_t leaders = report_tree_leaf_node(l->tree, leader->leaf);
	struct weight w = profile_block_weight(l->report->profile, block);

	if (node == REPORT_NODE_IGNORED)
		return;
	if (is_too_young(l, leader)) {
		add_weight(&l->younger, &w);
		return;
	}
	uint32_t at = leaders == REPORT_NODE_IGNORED ?
			      0 : *find_slot(l, path_of(l, leaders), LEAK_DEFINITE);

	if (at && l->sites.data[at - 1].suppression) {
		add_weight(suppressed_by(l, l->sites.data[at - 1].suppression), &w);
		return;
	}
	if (!count_block(l, block, node, LEAK_INDIRECT) || !at)
		return;
	l->sites.data[at - 1].indirect_bytes += w.bytes;
	l->sites.data[at - 1].indirect_blocks += w.blocks;
}

static int add_unchecked(void *ctx, const struct block *block)
{
	leaks_add(ctx, block, LEAK_UNCHECKED);
	return 0;
}

void leaks_add_all(struct leaks *l)
{
	profile_each_block(l->report->profile, add_unchecked, l);
}

static int compare_sites(const void *a, const void *b)
{
	const struct leak_site *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	uint64_t of_x = x->bytes + x->indirect_bytes, of_y = y->bytes + y->indirect_bytes;

	if (of_x != of_y)
		return of_x > of_y ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	if (x->first_leaf != y->first_leaf)
		return x->first_leaf < y->first_leaf ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

void leaks_sort(struct leaks *l)
{
	if (l->sites.count > 1)
		qsort(l->sites.data, l->sites.count, sizeof(*l->sites.data), compare_sites);
	memset(l->slot, 0, sizeof(*l->slot) << l->slot_bits);
	for (size_t i = 0; i < l->sites.count; i++)
		*find_slot(l, l->sites.data[i].path, l->sites.data[i].kind) = (uint32_t)i + 1;
}

void leaks_each_frame(const struct leaks *l, uint32_t node, leaks_frame_fn *fn, void *ctx)
{
	const struct calltree *tree = profile_calltree(l->report->profile);
	struct leak_frames frames = {0};

	list_frames((struct leaks *)l, node, &frames); /* which only caches names */
	for (size_t k = 0; k < frames.list.count; k++) {
		const struct symbol *symbol =
			l->report->symbol(l->report->symbol_ctx, frames.list.data[k], SYMBOL_ALL);

		for (uint32_t i = 0; i < symbol->count; i++)
			fn(ctx, calltree_frame(tree, frames.list.data[k])->pc, symbol,
			   &symbol->frame[i]);
	}
	vec_deinit(&frames.list);
}

double leaks_age(const struct leaks *l, uint32_t time)
{
	return l->now > time ? (l->now - time) / 1000.0 : 0;
}

bool leaks_are_sampled(const struct leaks *l)
{
	return profile_options(l->report->profile)->sample_interval != 0;
}
