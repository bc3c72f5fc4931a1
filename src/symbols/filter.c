/*
 * The rules of doc/massif.md section 2.8, in their order:
 *
 *   innermost ... | alloc-fns stripped | shown, at most depth | cut | ... outermost
 *                 ^first                                     ^main
 *
 * A frame is an address here, with all functions inlined at it. Owns the lists of names.
 */
#include "symbols/filter.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

struct name_list {
	char **data;
	size_t count, capacity;
};

struct filter {
	uint32_t depth;
	/* Massif records depth + 50 frames, without the allocation function itself */
	size_t reach;
	bool show_below_main;
	struct name_list alloc_fns, ignore_fns;
};

/* The lists of Massif 3.19 and of its newest version, merged; for 64-bit programs. */
static const char *const default_alloc_fns[] = {
	"malloc",
	"__builtin_new",
	"operator new(unsigned)",
	"operator new(unsigned long)",
	"__builtin_vec_new",
	"operator new[](unsigned)",
	"operator new[](unsigned long)",
	"calloc",
	"aligned_alloc",
	"realloc",
	"memalign",
	"posix_memalign",
	"valloc",
	"operator new(unsigned, std::nothrow_t const&)",
	"operator new[](unsigned, std::nothrow_t const&)",
	"operator new(unsigned long, std::nothrow_t const&)",
	"operator new[](unsigned long, std::nothrow_t const&)",
	"operator new(unsigned long, std::align_val_t)",
	"operator new[](unsigned long, std::align_val_t)",
	"operator new(unsigned long, std::align_val_t, std::nothrow_t const&)",
	"operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
};

static bool has_name(const struct name_list *l, const char *name)
{
	for (size_t i = 0; name && i < l->count; i++) {
		if (strcmp(l->data[i], name) == 0)
			return true;
	}
	return false;
}

static void add_name(struct name_list *l, const char *name)
{
	*vec_add(l) = xstrdup(name);
}

static void name_list_deinit(struct name_list *l)
{
	vec_release(l, e, free(*e));
}

struct filter *filter_new(uint32_t depth, bool show_below_main)
{
	struct filter *f = xcalloc(1, sizeof(*f));
	f->depth = depth;
	f->reach = (size_t)depth + 50 - 1;
	f->show_below_main = show_below_main;
	for (size_t i = 0; i < ARRAY_SIZE(default_alloc_fns); i++)
		add_name(&f->alloc_fns, default_alloc_fns[i]);
	return f;
}

struct filter *filter_new_whole(uint32_t depth, bool show_below_main)
{
	struct filter *f = filter_new(depth, show_below_main);
	name_list_deinit(&f->alloc_fns);
	f->depth = (uint32_t)f->reach;
	return f;
}

void filter_keep_first(struct filter *f)
{
	f->reach++;
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	name_list_deinit(&f->alloc_fns);
	name_list_deinit(&f->ignore_fns);
	free(f);
}

void filter_add_alloc_fn(struct filter *f, const char *name)
{
	add_name(&f->alloc_fns, name);
}

void filter_add_ignore_fn(struct filter *f, const char *name)
{
	add_name(&f->ignore_fns, name);
}

static void log_names(const char *what, const struct name_list *l)
{
	log_verbose("%s:%s", what, l->count ? "" : " none");
	for (size_t i = 0; i < l->count; i++)
		log_verbose("  %s", l->data[i]);
}

void filter_log(const struct filter *f)
{
	log_names("alloc-fns", &f->alloc_fns);
	log_names("ignore-fns", &f->ignore_fns);
}

bool filter_is_alloc_fn(const struct filter *f, const char *name)
{
	return has_name(&f->alloc_fns, name);
}

size_t filter_reach(const struct filter *f)
{
	return f->reach;
}

bool filter_has_ignore_fns(const struct filter *f)
{
	return f->ignore_fns.count > 0;
}

/* The innermost function of @sym that is not an alloc-fn, or NULL if all are. */
static const struct symbol_frame *first_other(const struct filter *f, const struct symbol *sym)
{
	for (uint32_t i = 0; i < sym->count; i++) {
		if (!has_name(&f->alloc_fns, sym->frame[i].name))
			return &sym->frame[i];
	}
	return NULL;
}

/* Whether frame @i consists of alloc-fns only, inlined ones included. */
static bool is_stripped(const struct filter *f, filter_symbol_fn *symbol, void *ctx, size_t i)
{
	const struct symbol *sym = symbol(ctx, i, SYMBOL_REAL);
	return has_name(&f->alloc_fns, sym->frame[sym->count - 1].name) &&
	       !first_other(f, symbol(ctx, i, SYMBOL_ALL));
}

static const char *first_name(const struct symbol *sym)
{
	for (uint32_t i = 0; i < sym->count; i++) {
		if (sym->frame[i].name)
			return sym->frame[i].name;
	}
	return NULL;
}

/* The name compared with ignore-fns for a stack whose first frame is @first. */
static const char *name_to_ignore(const struct filter *f, filter_symbol_fn *symbol, void *ctx,
				  size_t first, size_t count)
{
	const char *name = first_other(f, symbol(ctx, first, SYMBOL_ALL))->name;
	for (size_t i = first + 1; !name && i < count; i++)
		name = first_name(symbol(ctx, i, SYMBOL_ALL));
	return name;
}

/*
 * The frame after which a stack is cut: the outermost main, otherwise the innermost start-up
 * function, otherwise the last frame.
 */
static size_t last_shown(filter_symbol_fn *symbol, void *ctx, size_t count)
{
	size_t last = count - 1;
	for (size_t i = count; i-- > 0;) {
		const struct symbol *sym = symbol(ctx, i, SYMBOL_REAL);
		if (sym->is_main)
			return i;
		if (sym->is_below_main)
			last = i;
	}
	return last;
}

bool filter_stack(const struct filter *f, filter_symbol_fn *symbol, void *ctx, size_t count,
		  struct filter_range *shown_out)
{
	size_t first = 0;
	count = MIN(count, filter_reach(f));
	while (first < count && is_stripped(f, symbol, ctx, first))
		first++;
	if (first == count)
		return false;
	if (f->ignore_fns.count &&
	    has_name(&f->ignore_fns, name_to_ignore(f, symbol, ctx, first, count)))
		return false;
	size_t shown = count - first;
	if (!f->show_below_main) {
		size_t last = last_shown(symbol, ctx, count);
		shown = last < first ? 1 : last - first + 1; /* main itself was an alloc-fn */
	}
	*shown_out = (struct filter_range){first, MIN(shown, f->depth)};
	return true;
}
