/*
 * Each block has one holder, so blocks form trees below the roots. A block's chain is its holder's
 * chain and the holder's call site.
 */
#include "session/holder_chains.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/call_sites.h"
#include "output/leaks.h"
#include "session/final_scan.h"
#include "session/root_places.h"
#include "symbols/data_symbols.h"
#include "symbols/demangle.h"
#include "tracee/state/module.h"

struct search {
	const struct report *report;
	const struct final_scan *scan;
	const struct root_places *places;
	struct leak_holders *out;
	struct data_symbols *symbols;
	struct shown_stack stack;
	uint32_t *chain;       /* by block; 0 = not known yet */
	VEC(uint32_t) label;   /* by leaf: text + 1 of its call site; 0 = not known yet */
	VEC(uint32_t) way;     /* scratch: blocks from one to a known chain */
};

/* -- roots -- */

/* "variable 'v' in libx.so", "data of libx.so", or NULL. */
static char *variable_name(struct search *x, taddr_t addr)
{
	uint64_t vaddr, offset;
	const struct module *m = held_modules_find(&x->scan->modules, addr, &vaddr);

	if (!m)
		return NULL;
	const char *object = text_base_name(m->path);
	const char *symbol = data_symbols_find(x->symbols, m->file, vaddr, &offset);

	if (!symbol)
		return xasprintf("data of %s", object);
	_cleanup_free_ char *plain = demangle(symbol);

	return xasprintf("variable '%s' in %s", plain ? plain : symbol, object);
}

static char *thread_name(const struct root_places *places, taddr_t addr)
{
	pid_t tid;
	enum root_place place = root_places_find(places, addr, &tid);

	if (place == ROOT_STACK)
		return xasprintf("stack of thread %d", (int)tid);
	return place == ROOT_THREAD_LOCAL ?
		       xasprintf("thread-local memory of thread %d", (int)tid) : NULL;
}

static char *root_name(struct search *x, enum leakcheck_holder kind, taddr_t addr)
{
	char *name;

	if (kind == LEAKCHECK_HELD_BY_REGISTER)
		return xstrdup("a register");
	name = variable_name(x, addr);
	if (!name)
		name = thread_name(x->places, addr);
	return name ? name : xstrdup("other memory");
}

/* -- blocks -- */

/* The text of the call site of @leaf. */
static uint32_t label_of(struct search *x, uint32_t leaf)
{
	while (x->label.count <= leaf)
		*vec_add(&x->label) = 0;
	if (x->label.data[leaf])
		return x->label.data[leaf] - 1;
	bool is_shown = shown_stack_fill(&x->stack, profile_leaf(x->report->profile, leaf)->node);
	_cleanup_free_ char *text =
		is_shown ? call_site_text(x->report, call_site_find(&x->stack)) :
			   xstrdup("[ignored]");
	uint32_t label = leak_holders_text(x->out, text);

	x->label.data[leaf] = label + 1;
	return label;
}

/* The chain of @block, whose holder's chain is known if it is a block. */
static uint32_t make_chain(struct search *x, uint32_t block)
{
	const struct leakcheck *c = &x->scan->check;
	uint64_t value;
	enum leakcheck_holder kind = leakcheck_holder(c, block, &value);

	if (kind == LEAKCHECK_HELD_BY_BLOCK)
		return leak_holders_link(x->out, x->chain[value],
					 label_of(x, c->blocks.data[value].leaf));
	_cleanup_free_ char *name = root_name(x, kind, value);

	return leak_holders_link(x->out, 0, leak_holders_text(x->out, name));
}

/* Holders were reached before what they hold, so the way ends. */
static uint32_t find_chain(struct search *x, uint32_t block)
{
	const struct leakcheck *c = &x->scan->check;

	x->way.count = 0;
	for (uint64_t at = block; !x->chain[at];) {
		*vec_add(&x->way) = (uint32_t)at;
		if (leakcheck_holder(c, (uint32_t)at, &at) != LEAKCHECK_HELD_BY_BLOCK)
			break;
	}
	while (x->way.count > 0) {
		uint32_t at = x->way.data[--x->way.count];

		x->chain[at] = make_chain(x, at);
	}
	return x->chain[block];
}

struct leak_holders *holder_chains_find(const struct report *r, const struct final_scan *scan,
					const struct root_places *places, const uint32_t *site)
{
	const struct leakcheck *c = &scan->check;
	struct search x = {.report = r, .scan = scan, .places = places, .stack = {.report = r}};
	uint64_t value;

	x.out = xcalloc(1, sizeof(*x.out));
	leak_holders_init(x.out);
	x.symbols = data_symbols_new();
	x.chain = xcalloc(c->blocks.count + 1, sizeof(*x.chain));
	for (uint32_t i = 0; i < c->blocks.count; i++)
		if (site[i] != LEAK_NO_SITE &&
		    leakcheck_holder(c, i, &value) != LEAKCHECK_HELD_BY_NOTHING)
			leak_holders_add(x.out, site[i], find_chain(&x, i), c->blocks.data[i].size);
	leak_holders_sort(x.out);
	data_symbols_free(x.symbols);
	shown_stack_deinit(&x.stack);
	vec_deinit(&x.label);
	vec_deinit(&x.way);
	free(x.chain);
	return x.out;
}
