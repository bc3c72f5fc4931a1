/* See call_sites.h. */
#include "output/call_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "symbols/wrapper.h"

/* Candidates that get a label; those with equal labels are merged. */
#define LABELLED 64

/* A function of a stack: a frame of it, and an index into the frame's symbol. */
struct function {
	size_t frame; /* index into the stack's frames */
	uint32_t inlined;
	bool is_all;  /* the symbol was looked up with its inlined functions and lines */
	struct stack_frame text;
	const char *lacking; /* as in struct call_site */
};

/* The functions of one frame of the call tree: a part of struct known_functions.function. */
struct frame_functions {
	uint32_t frame;
	size_t first, count;
};

/* What names say of a function takes microseconds to find, and most frames are in many stacks. */
struct known_functions {
	HASH(struct frame_functions) frames;
	VEC(struct function) function; /* their member frame is not set */
};

/* The functions of a stack, looked up as far as they are needed. */
struct functions {
	const struct shown_stack *stack;
	struct known_functions *known;
	VEC(struct function) list;
	size_t next; /* frame of the stack */
};

static void known_functions_deinit(struct known_functions *k)
{
	hash_deinit(&k->frames);
	vec_deinit(&k->function);
}

static struct frame_text text_of(const struct report *r, const struct symbol *symbol, uint32_t i)
{
	const struct symbol_frame *f = &symbol->frame[i];

	return (struct frame_text){f->name, f->file, symbol->object, f->dir, r->my_code};
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

/* Adds the functions of @frame of the call tree. */
static const struct frame_functions *add_frame(struct known_functions *k, const struct report *r,
					       uint32_t frame)
{
	const struct symbol *symbol = r->symbol(r->symbol_ctx, frame, SYMBOL_REAL);
	struct frame_functions *added = hash_add(&k->frames, hash_u64(frame));
	/*
	 * Where the functions inlined at an address cannot be the user's, the debug information of
	 * libc, which takes 40 ms to read, is not needed.
	 */
	bool is_all = !symbol_is_startup(symbol) &&
		      !(standard_is_library(symbol->object) && !r->my_code);

	if (is_all)
		symbol = r->symbol(r->symbol_ctx, frame, SYMBOL_ALL);
	*added = (struct frame_functions){frame, k->function.count, 0};
	for (uint32_t i = is_all ? 0 : symbol->count - 1; i < symbol->count; i++) {
		const char *name = symbol->frame[i].name;

		*vec_add(&k->function) = (struct function){
			.inlined = i,
			.is_all = is_all,
			.text.rank = rank_of(r, symbol, i),
			.text.is_named = name,
			.text.is_allocator = name && wrapper_is_allocator(name),
			.text.object = symbol->is_below_main ? NULL : symbol->object,
			.lacking = symbol->lacks_inlined ? symbol->object : NULL,
		};
		added->count++;
	}
	return added;
}

static void add_next(struct functions *f)
{
	size_t at = f->next++;
	uint32_t frame = f->stack->frame.data[at];
	const struct frame_functions *known =
		hash_find(&f->known->frames, hash_u64(frame), e, e->frame == frame);

	if (!known)
		known = add_frame(f->known, f->stack->report, frame);
	for (size_t i = 0; i < known->count; i++) {
		struct function *function = vec_add(&f->list);

		*function = f->known->function.data[known->first + i];
		function->frame = at;
	}
}

static bool frame_at(void *ctx, size_t i, struct stack_frame *out)
{
	struct functions *f = ctx;

	while (i >= f->list.count && f->next < f->stack->frame.count)
		add_next(f);
	if (i >= f->list.count)
		return false;
	*out = f->list.data[i].text;
	return true;
}

/* The object of the first function up to the @last one in whose code inlined ones are unknown. */
static const char *find_lacking(const struct functions *f, size_t last)
{
	for (size_t i = 0; i <= last; i++)
		if (f->list.data[i].lacking)
			return f->list.data[i].lacking;
	return NULL;
}

static struct call_site find_site(const struct shown_stack *s, struct known_functions *known)
{
	struct functions f = {.stack = s, .known = known, .next = s->first};
	const struct stack stack = {frame_at, &f};

	if (!s->count)
		return (struct call_site){.rank = RANK_UNNAMED};
	struct stack_site found = stack_site_find(&stack);
	const struct function *at = &f.list.data[found.frame];
	uint32_t frame = s->frame.data[at->frame];
	const struct symbol *symbol =
		s->report->symbol(s->report->symbol_ctx, frame,
				  at->is_all ? SYMBOL_ALL : SYMBOL_REAL);
	struct call_site site = {
		.frame = frame,
		.inlined = at->is_all ? at->inlined : UINT32_MAX,
		.rank = found.rank,
		.is_unnamed = found.is_unnamed && symbol->object,
		.lacking = find_lacking(&f, found.frame),
	};

	vec_deinit(&f.list);
	return site;
}

struct call_site call_site_find(const struct shown_stack *s)
{
	struct known_functions known = {0};
	struct call_site site = find_site(s, &known);

	known_functions_deinit(&known);
	return site;
}

char *call_site_text(const struct report *r, struct call_site site)
{
	if (!site.frame)
		return xstrdup("???");
	if (wrapper_label(site.rank))
		return xstrdup(wrapper_label(site.rank));
	const struct symbol *symbol = r->symbol(r->symbol_ctx, site.frame, SYMBOL_REAL);
	bool is_startup = symbol_is_startup(symbol);

	if (!is_startup)
		symbol = r->symbol(r->symbol_ctx, site.frame, SYMBOL_ALL);
	const struct symbol_frame *f =
		&symbol->frame[is_startup ? symbol->count - 1 :
					    MIN(site.inlined, symbol->count - 1)];
	const struct calltree_frame *at = calltree_frame(profile_calltree(r->profile), site.frame);
	_cleanup_free_ char *text = NULL, *name = xstrdup(f->name ? f->name : "???");

	name[text_size_without_clone(name)] = '\0';
	if (!at->key && r->memory == MEMORY_PAGES)
		text = xstrdup("[initial image]");
	else if (!f->name && symbol->object && site.rank != RANK_SITE)
		text = xasprintf("[%s]", text_base_name(symbol->object));
	else if (!f->name && symbol->object) /* sites of a stripped object must differ */
		text = xasprintf("%#" PRIx64 " (in %s)", at->key,
				 text_base_name(symbol->object));
	else if (f->file && f->line && !is_startup)
		text = xasprintf("%s (%s:%u)", name, f->file, f->line);
	else if (symbol->object && *name != '[')
		text = xasprintf("%s (in %s)", name, text_base_name(symbol->object));
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

static bool merge_place(struct call_place *to, const struct call_place *from)
{
	if (compare_sites(to, from) != 0)
		return false;
	to->bytes += from->bytes;
	to->variance += from->variance;
	to->lacking_bytes += from->lacking_bytes;
	if (!to->site.lacking)
		to->site.lacking = from->site.lacking;
	return true;
}

static void find_places(const struct report *r, const struct leaf_amounts *held, place_vec *out)
{
	struct shown_stack stack = {.report = r};
	struct known_functions known = {0};

	for (uint32_t i = 1; i <= held->count; i++) {
		uint64_t bytes = held->bytes[i];

		if (!bytes || !shown_stack_fill(&stack, profile_leaf(r->profile, i)->node))
			continue;
		struct call_site site = find_site(&stack, &known);
		*vec_add(out) = (struct call_place){
			.site = site,
			.bytes = bytes,
			.variance = held->variance ? held->variance[i] :
						     profile_leaf_variance(r->profile, i, bytes),
			.lacking_bytes = site.lacking ? bytes : 0,
		};
	}
	known_functions_deinit(&known);
	shown_stack_deinit(&stack);
	vec_sort(out, compare_sites);
	vec_merge(out, merge_place);
	vec_sort(out, compare_bytes);
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
