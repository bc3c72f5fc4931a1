/* See block_sites.h. Frames of one address are together in the file, innermost first. */
#include "report/whatif/block_sites.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "symbols/wrapper.h"

struct named_frame {
	char *name, *file, *dir; /* NULL = unknown; owned */
	uint32_t line;
	enum frame_rank rank;
};

struct named_address {
	uint64_t key;
	uint32_t module;
	uint32_t first, count; /* of frames */
};

struct site_name {
	char *text;            /* those of the list of names */
	uint32_t number;
};

struct known_node {
	uint32_t node, site;
};

struct block_sites {
	VEC(char *) module;    /* paths by id; NULL = none */
	VEC(struct named_frame) frame;
	HASH(struct named_address) address;
	HASH(struct site_name) by_name;
	HASH(struct known_node) by_node;
	VEC(char *) name;
	bool is_open;          /* another frame of the last address follows */
};

struct block_sites *block_sites_new(void)
{
	return xcalloc(1, sizeof(struct block_sites));
}

void block_sites_free(struct block_sites *s)
{
	vec_release(&s->module, m, free(*m));
	vec_release(&s->frame, f, (free(f->name), free(f->file), free(f->dir)));
	vec_release(&s->name, n, free(*n));
	hash_deinit(&s->address);
	hash_deinit(&s->by_name);
	hash_deinit(&s->by_node);
	free(s);
}

#define MODULES_MAX (1u << 20)

void block_sites_add_module(struct block_sites *s, const struct events_module *m)
{
	if (!m->path || m->id >= MODULES_MAX)
		return;
	while (s->module.count <= m->id)
		*vec_add(&s->module) = NULL;
	free(s->module.data[m->id]);
	s->module.data[m->id] = xstrdup(m->path);
}

static const char *module_path(const struct block_sites *s, uint32_t id)
{
	return id < s->module.count ? s->module.data[id] : NULL;
}

static uint64_t hash_address(uint64_t key, uint32_t module)
{
	return hash_u64(key ^ (uint64_t)module << 48);
}

static struct named_address *find_address(struct block_sites *s, uint64_t key, uint32_t module)
{
	return hash_find(&s->address, hash_address(key, module), e,
			 e->key == key && e->module == module);
}

void block_sites_add_name(struct block_sites *s, const struct events_name *n)
{
	struct named_address *a = find_address(s, n->pc, n->module);
	const struct frame_text text = {.function = n->name, .file = n->file, .dir = n->dir,
					.object = module_path(s, n->module)};

	if (a && !s->is_open)
		return; /* it is known */
	if (!a) {
		a = hash_add(&s->address, hash_address(n->pc, n->module));
		*a = (struct named_address){n->pc, n->module, (uint32_t)s->frame.count, 0};
	}
	a->count++;
	s->is_open = n->is_inlined;
	*vec_add(&s->frame) = (struct named_frame){
		.name = n->name ? xstrdup(n->name) : NULL,
		.file = n->file ? xstrdup(n->file) : NULL,
		.dir = n->dir ? xstrdup(n->dir) : NULL,
		.line = n->line, .rank = wrapper_rank(&text)};
}

/* -- one stack -- */

struct stack_part {
	const struct named_frame *frame; /* NULL: the address has no name */
	const char *object;
	uint64_t key;
};

struct whole_stack {
	VEC(struct stack_part) part; /* innermost first */
};

static void add_parts(struct block_sites *s, const struct calltree_frame *f,
		      struct whole_stack *to)
{
	const struct named_address *a = find_address(s, f->key, f->module);

	for (uint32_t i = 0; a && i < a->count; i++)
		*vec_add(&to->part) = (struct stack_part){
			&s->frame.data[a->first + i], module_path(s, f->module), f->key};
	if (!a)
		*vec_add(&to->part) = (struct stack_part){NULL, module_path(s, f->module), f->key};
}

static bool part_at(void *ctx, size_t i, struct stack_frame *out)
{
	const struct whole_stack *w = ctx;

	if (i >= w->part.count)
		return false;
	const struct stack_part *p = &w->part.data[i];
	const char *name = p->frame ? p->frame->name : NULL;
	const struct frame_text unnamed = {.object = p->object};

	*out = (struct stack_frame){
		.rank = p->frame ? p->frame->rank : wrapper_rank(&unnamed),
		.is_named = name && wrapper_is_named(name),
		.is_allocator = name && wrapper_is_allocator(name),
		.object = p->object,
	};
	return true;
}

static char *part_text(const struct stack_part *p)
{
	const struct named_frame *f = p->frame;
	const char *object = p->object ? text_base_name(p->object) : NULL;

	if (f && f->name && f->file && f->line)
		return xasprintf("%s (%s:%" PRIu32 ")", f->name, text_base_name(f->file), f->line);
	if (f && f->name && object)
		return xasprintf("%s (in %s)", f->name, object);
	if (f && f->name)
		return xstrdup(f->name);
	return object ? xasprintf("0x%" PRIx64 " (in %s)", p->key, object) :
			xasprintf("0x%" PRIx64, p->key);
}

static char *site_text(struct block_sites *s, const struct calltree *t, uint32_t node)
{
	struct whole_stack w = {0};
	char *text;

	for (; node; node = calltree_parent(t, node))
		add_parts(s, calltree_frame(t, calltree_node_frame(t, node)), &w);
	if (w.part.count) {
		const struct stack stack = {part_at, &w};
		struct stack_site site = stack_site_find(&stack);
		const char *label = wrapper_label(site.rank);

		text = label ? xstrdup(label) : part_text(&w.part.data[site.frame]);
	} else {
		text = xstrdup("(no stack)");
	}
	vec_deinit(&w.part);
	return text;
}

uint32_t block_sites_find(struct block_sites *s, const struct calltree *t, uint32_t node)
{
	const struct known_node *k = hash_find(&s->by_node, hash_u64(node), e, e->node == node);

	if (k)
		return k->site;
	char *text = site_text(s, t, node);
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
