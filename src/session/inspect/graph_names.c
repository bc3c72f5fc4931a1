/* Names variables and sections by symbol tables, and frames by their functions. */
#include "session/inspect/graph_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "graph/graph_build.h"
#include "session/inspect/malloc_module.h"
#include "symbols/demangle.h"
#include "symbols/symbols.h"
#include "symbols/symtab.h"
#include "tracee/state/module.h"

struct graph_names {
	const struct held_modules *modules;
	struct data_symbols *data;
	struct symbols *code;
};

static char *clean_copy(const char *text)
{
	return text ? text_clean(text, strlen(text)) : NULL;
}

/* The place in its object's data of @addr in the process. */
static const struct module *find_data(const struct graph_names *n, taddr_t addr,
				      struct data_place *out)
{
	uint64_t vaddr;
	const struct module *m = held_modules_find(n->modules, addr, &vaddr);

	return m && data_symbols_place(n->data, m->file, vaddr, out) ? m : NULL;
}

static bool data_at(void *ctx, taddr_t addr, struct graph_data *out)
{
	struct data_place p;
	const struct module *m = find_data(ctx, addr, &p);

	if (!m)
		return false;
	*out = (struct graph_data){.first = m->bias + p.first, .start = m->bias + p.start,
				   .end = m->bias + p.end, .is_variable = p.is_variable};
	return true;
}

static void name_data(const struct graph_names *n, struct graph_owner *o)
{
	struct data_place p;
	const struct module *m = find_data(n, o->word, &p);
	_cleanup_free_ char *plain = m && p.is_variable && p.name ? demangle(p.name) : NULL;

	if (!m)
		return;
	o->name = clean_copy(plain ? plain : p.name);
	o->object = clean_copy(text_base_name(m->path));
}

static void name_frame(const struct graph_names *n, struct graph_owner *o)
{
	uint64_t vaddr;
	const struct module *m = held_modules_find(n->modules, o->addr - 1, &vaddr);
	const struct symbol *s = m ? symbols_find(n->code, m, o->addr - 1, SYMBOL_REAL) : NULL;

	if (!m)
		return;
	o->name = clean_copy(s->frame[s->count - 1].name);
	o->object = clean_copy(text_base_name(m->path));
}

static void name_owner(void *ctx, struct graph_owner *o)
{
	if (o->kind == OWNER_FRAME)
		name_frame(ctx, o);
	else
		name_data(ctx, o);
}

bool graph_names_build(struct block_holders *h, const struct held_modules *modules,
		       struct heap_graph *out)
{
	struct graph_names n = {.modules = modules, .data = data_symbols_new(),
				.code = symbols_new(&(struct symbols_options){
					.no_inline = true, .show_below_main = true})};
	const struct graph_namer namer = {.data = data_at, .name = name_owner, .ctx = &n};
	bool is_built = graph_build(h, &namer, out);

	symbols_free(n.code);
	data_symbols_free(n.data);
	return is_built;
}
