/*
 * Sums live blocks by site and kind, and chains of holders by site. Sites are found by a hash of
 * their path without its recursion, chains by their number in a trie. See leaks.h.
 */
#include "output/leaks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t pair_hash(uint32_t a, uint32_t b)
{
	return hash_u64((uint64_t)a << 32 | b);
}

void leak_holders_init(struct leak_holders *h)
{
	*h = (struct leak_holders){0};
	*vec_add(&h->links) = (struct leak_link){.text = UINT32_MAX};
	*hash_add(&h->link_hash, pair_hash(0, UINT32_MAX)) = 0;
}

void leak_holders_deinit(struct leak_holders *h)
{
	vec_release(&h->text, e, free(*e));
	vec_deinit(&h->links);
	vec_deinit(&h->held);
	hash_deinit(&h->link_hash);
	hash_deinit(&h->held_hash);
	hash_deinit(&h->text_hash);
}

uint32_t leak_holders_text(struct leak_holders *h, const char *text)
{
	uint64_t hash = hash_bytes(text, strlen(text));
	const uint32_t *known = hash_find(&h->text_hash, hash, i, !strcmp(h->text.data[*i], text));

	if (known)
		return *known;
	*vec_add(&h->text) = xstrdup(text);
	return *hash_add(&h->text_hash, hash) = (uint32_t)h->text.count - 1;
}

uint32_t leak_holders_link(struct leak_holders *h, uint32_t before, uint32_t text)
{
	const struct leak_link *last = &h->links.data[before];
	const struct leak_link link = {before, text, last->length + 1};

	if (before && (last->text == text || last->length == LEAK_CHAIN_MAX))
		return before;
	const uint32_t *known = hash_find(&h->link_hash, pair_hash(before, text), i,
					  h->links.data[*i].before == before &&
						  h->links.data[*i].text == text);

	if (known)
		return *known;
	*vec_add(&h->links) = link;
	return *hash_add(&h->link_hash, pair_hash(before, text)) = (uint32_t)h->links.count - 1;
}

void leak_holders_add(struct leak_holders *h, uint32_t site, uint32_t chain, uint64_t bytes)
{
	uint32_t *i = hash_find(&h->held_hash, pair_hash(site, chain), e,
				h->held.data[*e].site == site && h->held.data[*e].chain == chain);

	if (!i) {
		*vec_add(&h->held) = (struct leak_held){.site = site, .chain = chain};
		i = hash_add(&h->held_hash, pair_hash(site, chain));
		*i = (uint32_t)h->held.count - 1;
	}
	h->held.data[*i].bytes += bytes;
	h->held.data[*i].blocks++;
}

static int compare_held(const void *a, const void *b)
{
	const struct leak_held *x = a, *y = b;

	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->chain < y->chain ? -1 : x->chain > y->chain;
}

void leak_holders_sort(struct leak_holders *h)
{
	vec_sort(&h->held, compare_held);
	hash_deinit(&h->held_hash);
	for (uint32_t i = 0; i < h->held.count; i++) {
		const struct leak_held *e = &h->held.data[i];

		*hash_add(&h->held_hash, pair_hash(e->site, e->chain)) = i;
	}
}

size_t leak_holders_find(const struct leak_holders *h, uint32_t site, size_t *first_out)
{
	size_t first = vec_search(&h->held, e, e->site < site), end = first;

	while (end < h->held.count && h->held.data[end].site == site)
		end++;
	*first_out = first;
	return end - first;
}

/*
 * Sites of live blocks. Counting a block takes one hash look-up by the path of its leaf's node in
 * the report tree. To merge recursion, names of functions are looked up for each path, from the
 * symbol tables alone; files and lines only when a site is written.
 */

const char *const leak_kind_text[LEAK_KIND_COUNT] = {
	"still allocated", "definitely lost", "indirectly lost", "possibly lost", "still reachable",
};

void leaks_init(struct leaks *l, const struct report *report, uint64_t now, uint64_t minimum_age)
{
	*l = (struct leaks){
		.report = report, .now = now, .minimum_age = minimum_age,
		.shown_kinds = UINT32_MAX};
	l->tree = report_tree_new(report);
}

void leaks_deinit(struct leaks *l)
{
	report_tree_free(l->tree);
	free(l->lost_text);
	vec_deinit(&l->sites);
	vec_deinit(&l->suppressed);
	vec_deinit(&l->suppression);
	vec_deinit(&l->path);
	vec_deinit(&l->function);
	hash_deinit(&l->by_path);
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
		if (function_of(l, f->list.data[i].frame) !=
		    function_of(l, f->list.data[i - period].frame))
			return false;
	return true;
}

/* The frames of the path that ends at @node, innermost first; @is_merged: without recursion. */
static void list_frames(struct leaks *l, uint32_t node, bool is_merged, struct leak_frames *out)
{
	VEC(uint32_t) all = {0};

	for (; node; node = report_tree_node(l->tree, node)->parent)
		*vec_add(&all) = report_tree_node(l->tree, node)->frame;
	while (all.count > 0) {
		*vec_add(&out->list) = (struct leak_frame){.frame = all.data[--all.count]};
		for (size_t period = 1; is_merged && period <= PERIOD_MAX; period++) {
			if (!repeats(l, out, period))
				continue;
			out->list.count -= period;
			out->list.data[out->list.count - 1].is_repeated = true;
		}
	}
	vec_deinit(&all);
}

static uint32_t length_of(const struct leaks *l, uint32_t node)
{
	uint32_t length = 0;

	for (; node; node = report_tree_node(l->tree, node)->parent)
		length++;
	return length;
}

/* hash is equal for paths that differ in recursion only. */
static struct leak_path path_of(struct leaks *l, uint32_t node)
{
	struct leak_frames frames = {0};
	uint64_t hash = 1;

	while (l->path.count <= node)
		*vec_add(&l->path) = (struct leak_path){0};
	if (l->path.data[node].hash)
		return l->path.data[node];
	list_frames(l, node, true, &frames);
	for (size_t i = 0; i < frames.list.count; i++)
		hash = hash_u64(hash ^ frames.list.data[i].frame);
	vec_deinit(&frames.list);
	l->path.data[node] = (struct leak_path){hash ? hash : 1, length_of(l, node)};
	return l->path.data[node];
}

/* -- suppressions -- */

/* Where "b<c>(int)" begins in "int a::b<c>(int)" and, in *end_out, the parenthesis. */
static const char *bare_start(const char *name, const char **end_out)
{
	const char *start = name, *s;
	int depth = 0;

	for (s = name; *s && !(*s == '(' && depth == 0 && s > start); s++) {
		depth += (*s == '<') - (*s == '>' && depth > 0);
		if (depth == 0 && *s == '(') /* (anonymous namespace) */
			s += strcspn(s, ")");
		if (!*s)
			break;
		if (depth == 0 && (*s == ' ' || *s == ':'))
			start = s + 1;
	}
	*end_out = s;
	return start;
}

/*
 * The name of an inlined function as debug information and Valgrind have it: of "int
 * a::b<c<d>>(int)" that is "b<c<d> >". The caller frees it.
 */
static char *bare_name(const char *name)
{
	const char *end, *start = bare_start(name, &end);
	char *out = xcalloc(1, 2 * (size_t)(end - start) + 1), *to = out;

	for (const char *s = start; s < end; s++) {
		if (*s == '>' && s > start && s[-1] == '>')
			*to++ = ' ';
		*to++ = *s;
	}
	return out;
}

void leak_stack_deinit(struct leak_stack *s)
{
	vec_release(&s->names, e, free(*e));
	vec_deinit(&s->list);
}

static void add_names(const struct symbol *s, bool is_repeated, struct leak_stack *out)
{
	for (uint32_t k = 0; k < s->count; k++) {
		bool is_real = k + 1 == s->count;
		const char *name = s->frame[k].name;

		if (!is_real && name && !s->frame[k].plain)
			*vec_add(&out->names) = bare_name(name);
		*vec_add(&out->list) = (struct suppression_frame){
			.name = name, .object = s->object,
			.raw = is_real		    ? s->raw :
				s->frame[k].plain   ? s->frame[k].plain :
				name		    ? out->names.data[out->names.count - 1] :
					 NULL,
			.file = s->frame[k].file, .line = s->frame[k].line,
			.is_repeated = is_real && is_repeated};
	}
}

void leaks_list_stack(struct leaks *l, uint32_t node, bool is_merged, struct leak_stack *out)
{
	struct leak_frames frames = {0};

	list_frames(l, node, is_merged, &frames);
	for (size_t i = 0; i < frames.list.count; i++)
		add_names(l->report->symbol(l->report->symbol_ctx, frames.list.data[i].frame,
					    SYMBOL_ALL),
			  frames.list.data[i].is_repeated, out);
	vec_deinit(&frames.list);
}

#define SUPPRESSION_NONE 1u /* in leaks.suppression: looked up, and not found; 2 = number 0 */

/*
 * Where leaks of @kind with the path @node are counted if a suppression leaves them out, else NULL.
 * With recursion: entries may have it.
 */
static struct leak_sum *find_suppressed(struct leaks *l, uint32_t node, enum leak_kind kind)
{
	size_t at = (size_t)node * LEAK_KIND_COUNT + kind;
	struct leak_stack stack = {0};
	uint32_t found = 0;

	if (!l->suppressions || kind == LEAK_UNCHECKED)
		return NULL;
	while (l->suppression.count <= at)
		*vec_add(&l->suppression) = 0;
	if (!l->suppression.data[at]) {
		leaks_list_stack(l, node, false, &stack);
		bool is_known = suppressions_match(l->suppressions, kind - LEAK_DEFINITE,
						   stack.list.data, stack.list.count, &found);

		leak_stack_deinit(&stack);
		l->suppression.data[at] = is_known ? SUPPRESSION_NONE + 1 + found :
						     SUPPRESSION_NONE;
	}
	if (l->suppression.data[at] == SUPPRESSION_NONE)
		return NULL;
	found = l->suppression.data[at] - SUPPRESSION_NONE - 1;
	while (l->suppressed.count <= found)
		*vec_add(&l->suppressed) = (struct leak_sum){0};
	return &l->suppressed.data[found];
}

/* -- sites -- */

static uint64_t hash_site(uint64_t path, enum leak_kind kind)
{
	return hash_u64(path ^ (uint64_t)kind << 56);
}

/* NULL: there is none yet. */
static struct leak_site *find_site(const struct leaks *l, uint64_t path, enum leak_kind kind)
{
	const uint32_t *number = hash_find(&l->by_path, hash_site(path, kind), i,
					   l->sites.data[*i].path == path &&
						   l->sites.data[*i].kind == kind);

	return number ? &l->sites.data[*number] : NULL;
}

/* The site of @block, created if it is new. */
static struct leak_site *get_site(struct leaks *l, const struct block *block, uint32_t node,
				  enum leak_kind kind)
{
	struct leak_path path = path_of(l, node);
	struct leak_site *s = find_site(l, path.hash, kind);

	if (!s) {
		*hash_add(&l->by_path, hash_site(path.hash, kind)) = (uint32_t)l->sites.count;
		s = vec_add(&l->sites);
		*s = (struct leak_site){
			.node = node,
			.id = (uint32_t)l->sites.count - 1,
			.path = path.hash,
			.length = path.length,
			.first_leaf = report_tree_node(l->tree, node)->first_leaf,
			.kind = (uint8_t)kind,
			.oldest = block->time_us,
			.youngest = block->time_us,
		};
	}
	if (path.length > s->length) {
		s->node = node;
		s->length = path.length;
	}
	return s;
}

static void add_weight(struct leak_sum *s, const struct weight *w)
{
	s->bytes += w->bytes;
	s->blocks += w->blocks;
	s->variance += w->variance;
}

static bool is_too_young(const struct leaks *l, const struct block *block)
{
	return (l->now > block->time_us ? l->now - block->time_us : 0) < l->minimum_age;
}

/* Counts @block at the site of its path; or as suppressed, and returns NULL. */
static struct leak_site *count_block(struct leaks *l, const struct block *block, uint32_t node,
				     enum leak_kind kind)
{
	struct weight w = profile_block_weight(l->report->profile, block);
	struct leak_sum *suppressed = find_suppressed(l, node, kind);

	if (suppressed) {
		add_weight(suppressed, &w);
		return NULL;
	}
	struct leak_site *s = get_site(l, block, node, kind);

	s->bytes += w.bytes;
	s->blocks += w.blocks;
	s->variance += w.variance;
	s->oldest = MIN(s->oldest, block->time_us);
	s->youngest = MAX(s->youngest, block->time_us);
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

void leaks_add_outer(struct leaks *l, const struct block *block)
{
	struct weight w = profile_block_weight(l->report->profile, block);

	if (report_tree_leaf_node(l->tree, block->leaf) != REPORT_NODE_IGNORED)
		add_weight(is_too_young(l, block) ? &l->younger : &l->outer, &w);
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
	bool has_leader = leaders != REPORT_NODE_IGNORED;
	struct leak_sum *suppressed =
		has_leader ? find_suppressed(l, leaders, LEAK_DEFINITE) : NULL;

	if (suppressed) {
		add_weight(suppressed, &w);
		return;
	}
	if (!count_block(l, block, node, LEAK_INDIRECT) || !has_leader)
		return;
	struct leak_site *s = find_site(l, path_of(l, leaders).hash, LEAK_DEFINITE);

	if (!s)
		return;
	s->indirect_bytes += w.bytes;
	s->indirect_blocks += w.blocks;
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
	vec_sort(&l->sites, compare_sites);
	hash_deinit(&l->by_path);
	for (size_t i = 0; i < l->sites.count; i++)
		*hash_add(&l->by_path, hash_site(l->sites.data[i].path, l->sites.data[i].kind)) =
			(uint32_t)i;
}

void leaks_each_frame(const struct leaks *l, uint32_t node, leaks_frame_fn *fn, void *ctx)
{
	const struct calltree *tree = profile_calltree(l->report->profile);
	struct leak_frames frames = {0};

	list_frames((struct leaks *)l, node, true, &frames); /* which only caches names */
	for (size_t k = 0; k < frames.list.count; k++) {
		uint32_t frame = frames.list.data[k].frame;
		const struct symbol *symbol =
			l->report->symbol(l->report->symbol_ctx, frame, SYMBOL_ALL);

		for (uint32_t i = 0; i < symbol->count; i++)
			fn(ctx, calltree_frame(tree, frame)->key, symbol, &symbol->frame[i]);
	}
	vec_deinit(&frames.list);
}
