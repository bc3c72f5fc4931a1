/* See call_sites.h. */
#include "output/call_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "symbols/stack_site.h"

/* Candidates that get a label; those with equal labels are merged. */
#define LABELLED 64

static enum frame_rank rank_of(const struct symbol *symbol, uint32_t i)
{
	const struct symbol_frame *f = &symbol->frame[i];

	return wrapper_rank(&(struct frame_text){f->name, f->file, symbol->object});
}

/* Frame @i as a whole: functions inlined in a wrapper belong to the same library. */
static struct stack_frame frame_at(void *ctx, size_t i)
{
	const struct shown_stack *s = ctx;
	const struct report *r = s->report;
	const struct symbol *real =
		r->symbol(r->symbol_ctx, s->frame.data[s->first + i], SYMBOL_REAL);
	const char *name = real->frame[real->count - 1].name;

	return (struct stack_frame){
		.rank = rank_of(real, real->count - 1),
		.is_named = name,
		.is_allocator = name && wrapper_is_allocator(name),
		.object = real->is_below_main ? NULL : real->object,
	};
}

/* The function at frame @i that is the site: the innermost that is not a wrapper. */
static uint32_t inlined_site(const struct shown_stack *s, size_t i, bool is_unnamed)
{
	const struct symbol *symbol = shown_stack_symbol(s, i);
	uint32_t inlined = is_unnamed ? symbol->count - 1 : 0;

	while (inlined + 1 < symbol->count &&
	       (!symbol->frame[inlined].name || rank_of(symbol, inlined) != RANK_SITE))
		inlined++;
	return inlined;
}

struct call_site call_site_find(const struct shown_stack *s)
{
	const struct stack stack = {frame_at, (void *)s, s->count};

	if (!s->count)
		return (struct call_site){.rank = RANK_UNNAMED};
	struct stack_site found = stack_site_find(&stack);
	size_t i = s->first + found.frame;
	struct call_site site = {.frame = s->frame.data[i], .rank = found.rank};

	if (found.rank != RANK_SITE)
		return site;
	site.inlined = inlined_site(s, i, found.is_unnamed);
	site.is_unnamed = found.is_unnamed && shown_stack_symbol(s, i)->object;
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
	if (!at->pc && r->memory == MEMORY_PAGES)
		text = xstrdup("[initial image]");
	else if (!f->name && symbol->object && site.rank != RANK_SITE)
		text = xasprintf("[%s]", text_base_name(symbol->object));
	else if (!f->name && symbol->object) /* sites of a stripped object must differ */
		text = xasprintf("%#" PRIx64 " (in %s)", at->pc, symbol->object);
	else if (f->file && f->line)
		text = xasprintf("%s (%s:%u)", name, f->file, f->line);
	else if (symbol->object && *name != '[')
		text = xasprintf("%s (in %s)", name, symbol->object);
	else
		text = xstrdup(name);
	return text_clean(text, strlen(text));
}

/* -- the largest -- */

struct place {
	struct call_site site;
	uint64_t bytes, variance;
};

typedef VEC(struct place) place_vec;

static int compare_sites(const void *a, const void *b)
{
	const struct call_site *x = &((const struct place *)a)->site,
			       *y = &((const struct place *)b)->site;
	if (x->frame != y->frame)
		return x->frame < y->frame ? -1 : 1;
	return x->inlined < y->inlined ? -1 : x->inlined > y->inlined;
}

static int compare_bytes(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
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
		struct place *last = count ? &places->data[count - 1] : NULL;
		if (last && compare_sites(last, &places->data[i]) == 0) {
			last->bytes += places->data[i].bytes;
			last->variance += places->data[i].variance;
		} else {
			places->data[count++] = places->data[i];
		}
	}
	places->count = count;
	qsort(places->data, places->count, sizeof(*places->data), compare_bytes);
}

static uint64_t variance_of(const struct report *r, const struct leaf_amounts *held, uint32_t leaf)
{
	return held->variance ? held->variance[leaf] :
				profile_leaf_variance(r->profile, leaf, held->bytes[leaf]);
}

static void find_places(const struct report *r, const struct leaf_amounts *held, place_vec *out)
{
	struct shown_stack stack = {.report = r};

	for (uint32_t i = 1; i <= held->count; i++) {
		if (held->bytes[i] &&
		    shown_stack_fill(&stack, profile_leaf(r->profile, i)->node))
			*vec_add(out) = (struct place){
				.site = call_site_find(&stack),
				.bytes = held->bytes[i],
				.variance = variance_of(r, held, i),
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
static size_t add_place(const struct report *r, const struct place *place,
			struct call_site_sum *sums, size_t count)
{
	char *text = call_site_text(r, place->site);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(sums[i].text, text) == 0) {
			sums[i].bytes += place->bytes;
			sums[i].variance += place->variance;
			free(text);
			return count;
		}
	}
	sums[count] = (struct call_site_sum){
		.text = text, .bytes = place->bytes, .variance = place->variance};
	if (place->site.frame) {
		const struct symbol *s = r->symbol(r->symbol_ctx, place->site.frame, SYMBOL_ALL);

		sums[count].object = s->object;
		sums[count].is_unnamed = place->site.is_unnamed;
	}
	return count + 1;
}

size_t call_sites_largest(const struct report *r, const struct leaf_amounts *held,
			  struct call_site_sum *out, size_t max)
{
	struct call_site_sum sums[LABELLED];
	place_vec places = {0};
	size_t count = 0;

	find_places(r, held, &places);
	for (size_t i = 0; i < places.count && i < LABELLED; i++)
		count = add_place(r, &places.data[i], sums, count);
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
