/* Names variables and sections by symbol tables, and frames by their functions. */
#include "session/inspect/graph_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "graph/graph_build.h"
#include "graph/graph_typing.h"
#include "inspect/inspect.h"
#include "output/inspect_report.h"
#include "session/inspect/malloc_module.h"
#include "symbols/demangle.h"
#include "symbols/symbols.h"
#include "symbols/symtab.h"
#include "tracee/state/module.h"

struct graph_names {
	struct graph_typing *typing;
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
	const struct graph_names *n = ctx;
	struct data_place p;
	const struct module *m = find_data(n, addr, &p);

	if (graph_typing_data(n->typing, addr, out))
		return true;
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
	const struct elf_file *file;
	const char *variable = graph_typing_name(n->typing, o->word, &file);
	_cleanup_free_ char *plain =
		!variable && m && p.is_variable && p.name ? demangle(p.name) : NULL;

	if (variable || m)
		o->name = clean_copy(variable ? variable : plain ? plain : p.name);
	if (variable || m)
		o->object = clean_copy(held_modules_name(n->modules, variable ? file : m->file,
							 variable ? file->path : m->path));
}

static void name_frame(const struct graph_names *n, struct graph_owner *o)
{
	uint64_t vaddr;
	const struct module *m = held_modules_find(n->modules, o->addr - 1, &vaddr);
	const struct symbol *s = m ? symbols_find(n->code, m, o->addr - 1, SYMBOL_REAL) : NULL;

	if (!m)
		return;
	o->name = clean_copy(s->frame[s->count - 1].name);
	o->object = clean_copy(held_modules_name(n->modules, m->file, m->path));
}

static void name_owner(void *ctx, struct graph_owner *o)
{
	if (o->kind == OWNER_FRAME)
		name_frame(ctx, o);
	else
		name_data(ctx, o);
}

static struct graph_typing *typing_of(const struct held_modules *modules,
				      const struct inspect_input *in, const char *containers)
{
	struct graph_typing *t = graph_typing_new(containers);

	for (size_t i = 0; i < modules->list.count; i++)
		if (modules->list.data[i]->file && !modules->list.data[i]->is_vdso)
			graph_typing_add_object(t, modules->list.data[i]->file,
						modules->list.data[i]->bias);
	if (!in->source.read)
		return t;
	graph_typing_set_memory(t, &in->resident, &in->source);
	for (size_t i = 0; i < in->threads.count; i++)
		graph_typing_add_thread(t, in->threads.data[i].tid,
					in->threads.data[i].thread_pointer);
	return t;
}

/* What inspection knows of blocks; typing may know better. */
static void name_types(const struct block_types *from, struct heap_graph *g)
{
	char text[INSPECT_TYPE_SIZE];

	for (size_t i = 0; i < from->list.count; i++)
		*vec_add(&g->types) = clean_copy(inspect_type_text(&from->list.data[i], text));
}

bool graph_names_build(struct inspect_report *r, const struct held_modules *modules,
		       const struct inspect_input *in, struct heap_graph *out)
{
	struct graph_names n = {.modules = modules, .data = data_symbols_new(),
				.typing = typing_of(modules, in, out->containers),
				.code = symbols_new(&(struct symbols_options){
					.no_inline = true, .show_below_main = true})};
	const struct graph_namer namer = {.data = data_at, .name = name_owner, .ctx = &n};

	/* for tables of fields */
	out->drops_places &= !graph_typing_has_program(n.typing) && r->types.fields.count == 0;
	bool is_built = graph_build(&r->holders, &namer, out);

	if (is_built && out->types.count == 0)
		name_types(&r->types, out);
	if (is_built)
		graph_typing_run(n.typing, &r->types, out);
	graph_typing_free(n.typing);
	symbols_free(n.code);
	data_symbols_free(n.data);
	return is_built;
}
