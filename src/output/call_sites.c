/* See call_sites.h. */
#include "output/call_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "symbols/wrapper.h"

/* Candidates that get a label; those with equal labels are merged. */
#define LABELLED 64

/* A function of a stack: an index into the frames of the call tree, and one into its symbol. */
struct function {
	size_t frame;
	uint32_t inlined;
	bool is_all; /* the symbol was looked up with its inlined functions and lines */
};

/* The functions of a stack, looked up as far as they are needed. */
struct functions {
	const struct shown_stack *stack;
	VEC(struct function) list;
	size_t next; /* frame of the stack */
};

static const struct symbol *symbol_of(const struct shown_stack *s, const struct function *f)
{
	const struct report *r = s->report;

	return r->symbol(r->symbol_ctx, s->frame.data[f->frame],
			 f->is_all ? SYMBOL_ALL : SYMBOL_REAL);
}

static struct frame_text text_of(const struct report *r, const struct symbol *symbol, uint32_t i)
{
	const struct symbol_frame *f = &symbol->frame[i];

	return (struct frame_text){f->name, f->file, symbol->object, f->dir, r->my_code};
}

static void add_next(struct functions *f)
{
	const struct shown_stack *s = f->stack;
	const struct report *r = s->report;
	struct function next = {.frame = f->next++};
	const struct symbol *symbol = symbol_of(s, &next);

	/*
	 * Where the functions inlined at an address cannot be the user's, the debug information of
	 * libc, which takes 40 ms to read, is not needed.
	 */
	next.is_all = !symbol->is_below_main &&
		      !(standard_is_library(symbol->object) && !r->my_code);
	if (next.is_all)
		symbol = symbol_of(s, &next);
	else
		next.inlined = symbol->count - 1;
	for (; next.inlined < symbol->count; next.inlined++)
		*vec_add(&f->list) = next;
}

/* An inlined function whose source file is not known belongs to the one that contains it. */
static enum frame_rank rank_of(const struct report *r, const struct symbol *symbol, uint32_t i)
{
	const struct frame_text text = text_of(r, symbol, i);
	const struct frame_text real = text_of(r, symbol, symbol->count - 1);
	enum frame_rank rank = wrapper_rank(&text);

	if (symbol->is_below_main && rank == RANK_SITE && i + 1 == symbol->count)
		return wrapper_is_named(text.function) ? RANK_FUNCTION : RANK_UNNAMED;
	return rank == RANK_SITE && !standard_has_path(&text) ? wrapper_rank(&real) : rank;
}

static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	struct functions *f = ctx;

	while (i >= f->list.count && f->next < f->stack->frame.count)
		add_next(f);
	if (i >= f->list.count)
		return false;
	const struct function *function = &f->list.data[i];
	const struct symbol *symbol = symbol_of(f->stack, function);
	const char *name = symbol->frame[function->inlined].name;

	*out = (struct stack_frame){
		.rank = rank_of(f->stack->report, symbol, function->inlined),
		.is_named = name,
		.is_allocator = name && wrapper_is_allocator(name),
		.object = symbol->is_below_main ? NULL : symbol->object,
	};
	return true;
}

/* The object of the first function up to the @last one in whose code inlined ones are unknown. */
static const char *find_lacking(const struct functions *f, size_t last)
{
	for (size_t i = 0; i <= last; i++) {
		const struct symbol *symbol = symbol_of(f->stack, &f->list.data[i]);

		if (symbol->lacks_inlined)
			return symbol->object;
	}
	return NULL;
}

struct call_site call_site_find(const struct shown_stack *s)
{
	struct functions f = {.stack = s, .next = s->first};
	const struct stack stack = {frame_at, &f};

	if (!s->count)
		return (struct call_site){.rank = RANK_UNNAMED};
	struct stack_site found = stack_site_find(&stack);
	const struct function *at = &f.list.data[found.frame];
	struct call_site site = {
		.frame = s->frame.data[at->frame],
		.inlined = at->is_all ? at->inlined : UINT32_MAX,
		.rank = found.rank,
		.is_unnamed = found.is_unnamed && symbol_of(s, at)->object,
		.lacking = find_lacking(&f, found.frame),
	};

	vec_deinit(&f.list);
	return site;
}

char *call_site_text(const struct report *r, struct call_site site)
{
	if (!site.frame)
		return xstrdup("???");
	if (wrapper_label(site.rank))
		return xstrdup(wrapper_label(site.rank));
	const struct symbol *symbol = r->symbol(r->symbol_ctx, site.frame, SYMBOL_ALL);
	const struct symbol_frame *f = &symbol->frame[MIN(site.inlined, symbol->count - 1)];
	const struct calltree_frame *at = calltree_frame(profile_calltree(r->profile), site.frame);
	_cleanup_free_ char *text = NULL, *name = xstrdup(f->name ? f->name : "???");

	name[text_size_without_clone(name)] = '\0';
	if (!at->key && r->memory == MEMORY_PAGES)
		text = xstrdup("[initial image]");
	else if (!f->name && symbol->object && site.rank != RANK_SITE)
		text = xasprintf("[%s]", text_base_name(symbol->object));
	else if (!f->name && symbol->object) /* sites of a stripped object must differ */
		text = xasprintf("%#" PRIx64 " (in %s)", at->key, symbol->object);
	else if (f->file && f->line)
		text = xasprintf("%s (%s:%u)", name, f->file, f->line);
	else if (symbol->object && *name != '[')
		text = xasprintf("%s (in %s)", name, symbol->object);
	else
		text = xstrdup(name);
	return text_clean(text, strlen(text));
}

/* -- the largest -- */

struct call_place {
	struct call_site site;
	uint64_t bytes, variance, lacking_bytes;
};

typedef VEC(struct call_place) place_vec;

static int compare_sites(const void *a, const void *b)
{
	const struct call_site *x = &((const struct call_place *)a)->site,
			       *y = &((const struct call_place *)b)->site;
	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return x->inlined < y->inlined ? -1 : x->inlined > y->inlined;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct call_place *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return compare_sites(a, b);
}

/* Sorts @places by bytes, each site once. */
static void merge_places(place_vec *places)
{
	size_t count = 0;
	if (places->count == 0)
		return;
	qsort(places->data, places->count, sizeof(*places->data), compare_sites);
	for (size_t i = 0; i < places->count; i++) {
		struct call_place *last = count ? &places->data[count - 1] : NULL;
		if (last && compare_sites(last, &places->data[i]) == 0) {
			last->bytes += places->data[i].bytes;
			last->variance += places->data[i].variance;
			last->lacking_bytes += places->data[i].lacking_bytes;
			if (!last->site.lacking)
				last->site.lacking = places->data[i].site.lacking;
		} else {
			places->data[count++] = places->data[i];
		}
	}
	places->count = count;
	qsort(places->data, places->count, sizeof(*places->data), compare_bytes);
}

static void find_places(const struct report *r, const struct leaf_amounts *held, place_vec *out)
{
	struct shown_stack stack = {.report = r};

	for (uint32_t i = 1; i <= held->count; i++) {
		uint64_t bytes = held->bytes[i];

		if (!bytes || !shown_stack_fill(&stack, profile_leaf(r->profile, i)->node))
			continue;
		struct call_site site = call_site_find(&stack);
		*vec_add(out) = (struct call_place){
			.site = site,
			.bytes = bytes,
			.variance = held->variance ? held->variance[i] :
						     profile_leaf_variance(r->profile, i, bytes),
			.lacking_bytes = site.lacking ? bytes : 0,
		};
	}
	shown_stack_deinit(&stack);
	merge_places(out);
}

static int compare_sums(const void *a, const void *b)
{
	const struct call_site_sum *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->text, y->text);
}

/* Adds @place to the @count sums at @sums; returns how many there are then. */
static size_t add_place(const struct report *r, const struct call_place *place,
			struct call_site_sum *sums, size_t count)
{
	char *text = call_site_text(r, place->site);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(sums[i].text, text) == 0) {
			sums[i].bytes += place->bytes;
			sums[i].variance += place->variance;
			sums[i].lacking_bytes += place->lacking_bytes;
			if (!sums[i].lacking)
				sums[i].lacking = place->site.lacking;
			free(text);
			return count;
		}
	}
	sums[count] = (struct call_site_sum){
		.text = text, .bytes = place->bytes, .variance = place->variance,
		.lacking = place->site.lacking, .lacking_bytes = place->lacking_bytes};
	if (place->site.frame) {
		const struct symbol *s = r->symbol(r->symbol_ctx, place->site.frame, SYMBOL_ALL);

		const struct symbol_frame *f =
			&s->frame[MIN(place->site.inlined, s->count - 1)];

		sums[count].object = s->object;
		sums[count].file = f->file;
		sums[count].dir = f->dir;
		sums[count].line = f->line;
	}
	return count + 1;
}

/* @places: the largest first. */
static void sum_nameless(const struct report *r, const place_vec *places,
			 struct nameless_sites *out)
{
	*out = (struct nameless_sites){0};
	for (size_t i = 0; i < places->count; i++) {
		const struct call_site *site = &places->data[i].site;

		if (!site->is_unnamed)
			continue;
		out->bytes += places->data[i].bytes;
		if (!out->object && site->frame)
			out->object = r->symbol(r->symbol_ctx, site->frame, SYMBOL_ALL)->object;
	}
}

size_t call_sites_largest(const struct report *r, const struct leaf_amounts *held,
			  struct call_site_sum *out, size_t max,
			  struct nameless_sites *nameless_out)
{
	struct call_site_sum sums[LABELLED];
	place_vec places = {0};
	size_t count = 0;

	find_places(r, held, &places);
	for (size_t i = 0; i < places.count && i < LABELLED; i++)
		count = add_place(r, &places.data[i], sums, count);
	if (nameless_out)
		sum_nameless(r, &places, nameless_out);
	vec_deinit(&places);
	if (count > 0)
		qsort(sums, count, sizeof(*sums), compare_sums);
	for (size_t i = 0; i < count; i++) {
		if (i < max)
			out[i] = sums[i];
		else
			free(sums[i].text);
	}
	return MIN(count, max);
}
