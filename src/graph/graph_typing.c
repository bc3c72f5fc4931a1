/*
 * Types become indexes into the graph's list of names. A block of an array has the type
 * "Session[]"; its words count from the start of each element.
 */
#include "graph/graph_typing.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "graph/containers.h"
#include "graph/equal_strings.h"
#include "graph/graph_types.h"
#include "graph/struct_layout.h"
#include "graph/type_table.h"
#include "graph/typed_walk.h"
#include "graph/variables.h"

#define WORD 8u
#define FIELDS_MAX 1000000u
#define MERGE_LEAST 4096u
#define RECENT_FIELDS 1024u
#define NO_OF UINT32_MAX   /* nothing has fields of that */

struct graph_typing {
	struct type_table *types;
	struct variables *variables;
	struct containers *containers;
	struct debug_units *program;   /* NULL = no object was added */
	struct inspect_memory memory;
	bool has_memory;
};

struct graph_typing *graph_typing_new(const char *containers)
{
	char *why;
	struct graph_typing *t = xcalloc(1, sizeof(*t));

	t->types = type_table_new(NULL);
	t->variables = variables_new(t->types);
	t->containers = containers_new();
	if (containers && !containers_add_file(t->containers, containers, &why)) {
		log_warn("--containers: %s", why);
		free(why);
	}
	return t;
}

void graph_typing_free(struct graph_typing *t)
{
	if (t->has_memory)
		memory_deinit(&t->memory);
	containers_free(t->containers);
	variables_free(t->variables);
	type_table_free(t->types);
	free(t);
}

void graph_typing_add_object(struct graph_typing *t, struct elf_file *file, taddr_t bias)
{
	variables_add_object(t->variables, file, bias);
	if (!t->program)
		t->program = type_table_add(t->types, file);
}

bool graph_typing_has_program(struct graph_typing *t)
{
	return t->program && debug_units_exist(t->program);
}

void graph_typing_set_memory(struct graph_typing *t, const struct resident *pages,
			     const struct memory_source *source)
{
	memory_init(&t->memory, pages, source);
	t->has_memory = true;
}

void graph_typing_add_thread(struct graph_typing *t, pid_t tid, taddr_t thread_pointer)
{
	if (t->has_memory)
		variables_add_thread(t->variables, tid, thread_pointer, &t->memory);
}

bool graph_typing_data(struct graph_typing *t, taddr_t addr, struct graph_data *out)
{
	struct variable_place p;

	if (!variables_find(t->variables, addr, &p))
		return false;
	*out = (struct graph_data){
		.first = p.start, .start = p.start, .is_variable = true,
		.end = p.start + variables_get(t->variables, p.variable)->size};
	return true;
}

const char *graph_typing_name(struct graph_typing *t, taddr_t addr,
			      const struct elf_file **file_out)
{
	struct variable_place p;

	if (!variables_find(t->variables, addr, &p))
		return NULL;
	*file_out = variables_file(t->variables, p.variable);
	return variables_name(t->variables, p.variable);
}

/* -- names that are shown -- */

/* Cuts the template argument that begins at @at with a comma. */
static void cut_argument(char *at)
{
	char *end = at;
	int depth = 0;

	for (; *end; end++) {
		if (*end == '<' || *end == '(')
			depth++;
		else if ((*end == '>' || *end == ')') && depth-- == 0)
			break;
		else if (*end == ',' && depth == 0 && end > at)
			break;
	}
	memmove(at, end, strlen(end) + 1);
}

static void replace_all(char *text, const char *what, const char *with)
{
	size_t length = strlen(what), shorter = strlen(with);

	for (char *at = text; (at = strstr(at, what)); at += shorter) {
		memcpy(at, with, shorter);
		memmove(at + shorter, at + length, strlen(at + length) + 1);
	}
}

/* The name of @type without what libraries fill in: "std::vector<int>". The caller frees it. */
static char *shown_name(const struct graph_typing *t, uint32_t type)
{
	static const char *const filled_in[] = {
		", std::allocator<", ", std::char_traits<", ", std::default_delete<",
		", std::less<", ", std::hash<", ", std::equal_to<", ", std::__1::allocator<",
		", std::__1::char_traits<", ", std::__1::default_delete<", ", std::__1::less<",
		", alloc::alloc::Global"};
	_cleanup_free_ char *name = type_table_name(t->types, type);

	for (size_t i = 0; i < ARRAY_SIZE(filled_in); i++)
		for (char *at; (at = strstr(name, filled_in[i]));)
			cut_argument(at);
	replace_all(name, "> >", ">>");
	replace_all(name, "std::__cxx11::", "std::");
	replace_all(name, "std::__1::", "std::");
	replace_all(name, "std::basic_string<char>", "std::string");
	return text_clean(name, strlen(name));
}

/* -- blocks -- */

static uint32_t find_block(void *ctx, taddr_t addr)
{
	return heap_graph_find(ctx, addr); /* UINT32_MAX: TYPED_NO_BLOCK */
}

static void get_extent(void *ctx, uint32_t block, struct typed_extent *out)
{
	const struct graph_block *b = &((const struct heap_graph *)ctx)->block[block];

	*out = (struct typed_extent){b->addr, b->size};
}

static void find_block_soon(void *ctx, taddr_t addr)
{
	const struct heap_graph *g = ctx;

	if (g->index.top)
		block_index_place(&g->index, addr);
}

static void get_extent_soon(void *ctx, uint32_t block)
{
	__builtin_prefetch(&((const struct heap_graph *)ctx)->block[block]);
}

static bool is_variable(const struct graph_owner *o)
{
	return o->kind == OWNER_VARIABLE || o->kind == OWNER_INTERPRETER ||
	       (o->kind == OWNER_TLS && o->addr);
}

/* The type of the variable @o; TYPE_NONE = unknown. */
static uint32_t owner_type(struct graph_typing *t, const struct graph_owner *o,
			   taddr_t *start_out)
{
	struct variable_place p;

	if (!is_variable(o) || !variables_find(t->variables, o->word, &p))
		return TYPE_NONE;
	*start_out = p.start;
	return p.type;
}

/* -- names -- */

struct typing_names {
	struct graph_typing *typing;
	struct typed_walk *walk;
	struct heap_graph *graph;
	VEC(uint32_t) index;    /* by type: in the graph's names + 1; 0 = not there yet */
	VEC(uint32_t) type;     /* by index: type; TYPE_NONE of others' */
	size_t merge_at;        /* fields: then equal ones are merged */
	struct graph_field recent[RECENT_FIELDS]; /* those that were added last, without names */
};

/* The index of @type in the graph's names; UINT32_MAX: there are too many. */
static uint32_t name_index(struct typing_names *n, uint32_t type)
{
	struct heap_graph *g = n->graph;

	while (n->index.count <= type)
		*vec_add(&n->index) = 0;
	if (n->index.data[type])
		return n->index.data[type] - 1;
	if (g->types.count >= GRAPH_TYPE_MAX)
		return UINT32_MAX;
	while (n->type.count < g->types.count)
		*vec_add(&n->type) = TYPE_NONE;
	*vec_add(&g->types) = shown_name(n->typing, type);
	*vec_add(&n->type) = type;
	return (n->index.data[type] = (uint32_t)g->types.count) - 1;
}

static void name_blocks(struct typing_names *n)
{
	for (uint32_t i = 0; i < n->graph->blocks; i++) {
		uint32_t type = n->walk->type[i];
		uint32_t index = type == TYPE_NONE ? UINT32_MAX : name_index(n, type);

		if (index != UINT32_MAX)
			n->graph->block[i].type = index & GRAPH_TYPE_MAX;
	}
}

static void fill_words(const struct typing_names *n, struct graph_types *out)
{
	const struct type_table *t = n->typing->types;

	for (size_t i = 0; i < n->type.count; i++) {
		const struct data_type *e = type_table_get(t, n->type.data[i]);
		bool is_array = e->kind == DATA_ARRAY;
		uint64_t each = is_array ? type_table_get(t, e->target)->size : 0;

		*vec_add(&out->words) =
			each % WORD == 0 ? (uint32_t)MIN(each / WORD, UINT32_MAX) : 0;
	}
}

static int compare_fields(const void *a, const void *b)
{
	const struct graph_field *x = a, *y = b;

	if (x->of != y->of)
		return x->of < y->of ? -1 : 1;
	return x->word < y->word ? -1 : x->word > y->word;
}

static bool is_same_field(const struct graph_field *to, struct graph_field *from)
{
	return compare_fields(to, from) == 0;
}

/* There are as many as pointers, but few that differ. */
static void merge_fields(struct typing_names *n, struct graph_types *out)
{
	vec_sort(&out->fields, compare_fields);
	vec_merge(&out->fields, is_same_field);
	n->merge_at = MIN(MAX(2 * out->fields.count, (size_t)MERGE_LEAST), (size_t)FIELDS_MAX);
}

static void add_field(struct typing_names *n, struct graph_types *out, struct graph_field field)
{
	struct graph_field *recent = &n->recent[(field.of * 31 + field.word) % RECENT_FIELDS];

	if (compare_fields(recent, &field) == 0)
		return;
	*recent = field;
	if (out->fields.count >= n->merge_at && n->merge_at < FIELDS_MAX)
		merge_fields(n, out);
	if (out->fields.count < FIELDS_MAX)
		*vec_add(&out->fields) = field;
}

/* The words of node @node that lead to blocks: names are made later. */
static void collect_words(struct typing_names *n, struct graph_types *out, uint32_t node)
{
	const struct heap_graph *g = n->graph;
	uint32_t of = GRAPH_FIELDS_OWNER + (node - g->blocks), each = 0;

	if (graph_is_block(g, node)) {
		of = g->block[node].type;
		if (n->walk->type[node] == TYPE_NONE || of >= out->words.count)
			return;
		each = out->words.data[of];
	}
	for (uint32_t i = g->first[node]; i < g->first[node + 1]; i++) {
		uint32_t word = g->place[i];

		if (word != GRAPH_FAR)
			add_field(n, out,
				  (struct graph_field){of, each ? word % each : word, NULL});
	}
}

static void name_fields(struct typing_names *n, struct graph_types *out)
{
	const struct heap_graph *g = n->graph;

	for (size_t i = 0; i < RECENT_FIELDS; i++)
		n->recent[i].of = NO_OF;
	for (uint32_t node = 0; g->place && node < graph_nodes(g); node++)
		collect_words(n, out, node);
	merge_fields(n, out);
	for (size_t i = 0; i < out->fields.count; i++) {
		struct graph_field *f = &out->fields.data[i];
		uint32_t type;
		taddr_t start;

		if (f->of < GRAPH_FIELDS_OWNER)
			type = n->type.data[f->of];
		else
			type = owner_type(n->typing, &g->owners.data[f->of - GRAPH_FIELDS_OWNER],
					  &start);
		_cleanup_free_ char *path =
			type == TYPE_NONE ? NULL :
			typed_walk_path(n->walk, type, f->word * (uint64_t)WORD);

		f->name = path ? text_clean(path, strlen(path)) : NULL;
	}
}

/* -- tables -- */

static int compare_containers(const void *a, const void *b)
{
	const struct graph_container *x = a, *y = b;
	uint64_t free_x = x->capacity - x->used, free_y = y->capacity - y->used;

	if (free_x != free_y)
		return free_x > free_y ? -1 : 1;
	return x->containers == y->containers ? strcmp(x->name, y->name) :
	       x->containers > y->containers ? -1 : 1;
}

static void list_containers(const struct typing_names *n, struct graph_types *out)
{
	for (size_t i = 0; i < n->walk->sums.count; i++) {
		const struct container_sum *s = &n->walk->sums.data[i];
		*vec_add(&out->containers) = (struct graph_container){
			.name = shown_name(n->typing, s->type), .containers = s->containers,
			.size = type_table_get(n->typing->types, s->type)->size,
			.empty = s->empty, .used = s->used, .capacity = s->capacity};
	}
	vec_sort(&out->containers, compare_containers);
}

static int compare_padding(const void *a, const void *b)
{
	const struct graph_padding *x = a, *y = b;
	uint64_t lost_x = x->objects * x->padding, lost_y = y->objects * y->padding;

	return lost_x == lost_y ? strcmp(x->name, y->name) : lost_x > lost_y ? -1 : 1;
}

/* Objects of each type in blocks; what the type of an array's element is counts. */
struct object_count {
	uint64_t objects;
	bool is_most;           /* arrays may have fewer elements than there is room for */
};

static void count_objects(const struct typing_names *n, struct object_count *count)
{
	const struct type_table *t = n->typing->types;

	for (uint32_t i = 0; i < n->graph->blocks; i++) {
		uint32_t type = n->walk->type[i];
		const struct data_type *e = type_table_get(t, type);
		uint64_t each = e->kind == DATA_ARRAY ? type_table_get(t, e->target)->size : 0;

		if (each) {
			count[e->target].objects += n->graph->block[i].size / each;
			count[e->target].is_most = true;
		} else if (type != TYPE_NONE) {
			count[type].objects++;
		}
	}
}

static void add_padding(const struct typing_names *n, uint32_t type,
			const struct object_count *count, struct graph_types *out)
{
	struct type_table *t = n->typing->types;
	uint64_t lost = struct_layout_padding(t, type), size = type_table_get(t, type)->size;
	_cleanup_free_ char *order = NULL;

	if (!lost)
		return;
	uint64_t best = struct_layout_best(t, type, &order);

	*vec_add(&out->padding) = (struct graph_padding){
		.name = shown_name(n->typing, type), .objects = count->objects,
		.is_most = count->is_most, .size = size, .padding = lost,
		.best = best ? best : size,
		.order = order ? text_clean(order, strlen(order)) : NULL};
}

static void list_padding(const struct typing_names *n, struct graph_types *out)
{
	uint32_t types = type_table_count(n->typing->types);
	_cleanup_free_ struct object_count *count = xcalloc(types, sizeof(*count));

	count_objects(n, count);
	for (uint32_t type = 0; type < types; type++)
		if (count[type].objects)
			add_padding(n, type, &count[type], out);
	vec_sort(&out->padding, compare_padding);
}

/* -- what inspection knows -- */

/* Objects of Python's say what they are; debug information has only what they begin with. */
static void keep_known(const struct block_types *known, const struct heap_graph *g,
		       struct typed_walk *walk)
{
	for (uint32_t i = 0; i < g->blocks; i++)
		if (g->block[i].type < known->list.count &&
		    known->list.data[g->block[i].type].kind == KIND_PYTHON)
			walk->type[i] = TYPE_NONE;
}

static void add_known_fields(const struct block_types *known, struct graph_types *out)
{
	for (size_t i = 0; i < known->fields.count; i++) {
		const struct block_field *f = &known->fields.data[i];
		const char *type = known->list.data[f->type].name;

		*vec_add(&out->fields) = (struct graph_field){f->type, f->word, xstrdup(f->name)};
		while (out->words.count <= f->type)
			*vec_add(&out->words) = 0;
		if (text_ends_in(type, "[]"))
			out->words.data[f->type] = 1;
	}
	vec_sort(&out->fields, compare_fields);
}

void graph_typing_run(struct graph_typing *t, const struct block_types *known,
		      struct heap_graph *g)
{
	const struct typed_heap heap = {
		.types = t->types, .containers = t->containers, .near = t->program,
		.memory = &t->memory, .blocks = g->blocks, .find = find_block,
		.extent = get_extent, .find_soon = find_block_soon,
		.extent_soon = get_extent_soon, .ctx = g};
	struct typed_walk walk;
	struct typing_names n = {.typing = t, .walk = &walk, .graph = g};

	if (t->has_memory || known->fields.count)
		g->typed = xcalloc(1, sizeof(*g->typed));
	if (!t->has_memory) {
		if (g->typed)
			add_known_fields(known, g->typed);
		return;
	}
	typed_walk_init(&walk, &heap);
	for (size_t i = 0; i < g->owners.count; i++) {
		taddr_t start;
		uint32_t type = owner_type(t, &g->owners.data[i], &start);

		if (type != TYPE_NONE)
			typed_walk_add_root(&walk, start, type);
	}
	typed_walk_run(&walk);
	keep_known(known, g, &walk);
	name_blocks(&n);
	fill_words(&n, g->typed);
	name_fields(&n, g->typed);
	add_known_fields(known, g->typed);
	list_containers(&n, g->typed);
	list_padding(&n, g->typed);
	equal_strings_find(&walk, &g->typed->strings);
	typed_walk_deinit(&walk);
	vec_deinit(&n.index);
	vec_deinit(&n.type);
}
