/* See block_sites.h. */
#include "report/whatif/block_sites.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/hash.h"
#include "output/call_sites.h"
#include "output/report_tree.h"
#include "profile/profile.h"
#include "symbols/filter.h"
#include "symbols/symbols.h"

#define DEPTH 200u
#define MODULES_MAX (1u << 20)

struct site_name {
	char *text;             /* those of the list of names */
	uint32_t number;
};

struct known_node {
	uint32_t node, site;
};

struct block_sites {
	struct profile *profile; /* only its call tree is used */
	struct filter *filter;
	struct symbols *symbols;
	struct elf_files files;
	VEC(struct module *) module; /* by id; NULL = none */
	struct report report;
	struct shown_stack stack;
	HASH(struct site_name) by_name;
	HASH(struct known_node) by_node;
	VEC(char *) name;
};

static struct module *find_module(const struct block_sites *s, uint32_t id)
{
	return id < s->module.count ? s->module.data[id] : NULL;
}

static const struct symbol *find_symbol(void *ctx, uint32_t frame, enum symbol_part part)
{
	const struct block_sites *s = ctx;
	const struct calltree_frame *f = calltree_frame(profile_calltree(s->profile), frame);

	return f->kind == FRAME_NAMED ?
		       symbols_named(s->symbols, f->key) :
		       symbols_find(s->symbols, find_module(s, f->module), f->key, part);
}

struct block_sites *block_sites_new(const struct my_code *my_code)
{
	struct block_sites *s = xcalloc(1, sizeof(*s));

	s->profile = profile_new(&(struct profile_options){
		.max_snapshots = 10, .detailed_freq = 10}, 0);
	s->filter = filter_new_whole(DEPTH, false);
	s->symbols = symbols_new(&(struct symbols_options){0});
	s->report = (struct report){.profile = s->profile, .filter = s->filter,
				    .symbol = find_symbol, .symbol_ctx = s, .my_code = my_code};
	s->stack.report = &s->report;
	return s;
}

void block_sites_free(struct block_sites *s)
{
	shown_stack_deinit(&s->stack);
	symbols_free(s->symbols);
	filter_free(s->filter);
	profile_free(s->profile);
	for (size_t i = 0; i < s->module.count; i++)
		if (s->module.data[i])
			module_release(s->module.data[i]);
	vec_deinit(&s->module);
	elf_files_deinit(&s->files);
	vec_release(&s->name, n, free(*n));
	hash_deinit(&s->by_name);
	hash_deinit(&s->by_node);
	free(s);
}

struct calltree *block_sites_calltree(struct block_sites *s)
{
	return profile_calltree(s->profile);
}

void block_sites_add_module(struct block_sites *s, const struct events_module *m)
{
	if (!m->path || m->id >= MODULES_MAX || find_module(s, m->id))
		return;
	while (s->module.count <= m->id)
		*vec_add(&s->module) = NULL;
	struct module *new = xcalloc(1, sizeof(*new));

	new->id = m->id;
	new->users = 1;
	new->start = m->start;
	new->end = m->end;
	new->bias = m->bias;
	new->path = xstrdup(m->path);
	if (elf_file_open(&s->files, m->path, NULL, &new->file) != 0)
		new->file = NULL;
	s->module.data[m->id] = new;
}

void block_sites_add_name(struct block_sites *s, const struct events_name *n)
{
	struct symbol_frame frame = {
		.name = n->name, .file = n->file, .dir = n->dir, .line = n->line};
	const struct module *m = find_module(s, n->module);
	const struct symbol symbol = {.object = m ? m->path : NULL, .frame = &frame, .count = 1,
				      .is_main = n->name && strcmp(n->name, "main") == 0};

	symbols_define(s->symbols, n->module, n->pc, &symbol);
}

uint32_t block_sites_find(struct block_sites *s, uint32_t node)
{
	const struct known_node *k = hash_find(&s->by_node, hash_u64(node), e, e->node == node);

	if (k)
		return k->site;
	shown_stack_fill(&s->stack, node);
	char *text = call_site_text(&s->report, call_site_find(&s->stack));
	uint64_t hash = hash_bytes(text, strlen(text));
	const struct site_name *n = hash_find(&s->by_name, hash, e, strcmp(e->text, text) == 0);
	uint32_t number = n ? n->number : (uint32_t)s->name.count;

	if (n) {
		free(text);
	} else {
		*vec_add(&s->name) = text;
		*hash_add(&s->by_name, hash) = (struct site_name){text, number};
	}
	*hash_add(&s->by_node, hash_u64(node)) = (struct known_node){node, number};
	return number;
}

void block_sites_take_names(struct block_sites *s, char ***name_out, size_t *count_out)
{
	*name_out = s->name.data;
	*count_out = s->name.count;
	s->name.data = NULL;
	s->name.count = s->name.capacity = 0;
	hash_deinit(&s->by_name);
}
