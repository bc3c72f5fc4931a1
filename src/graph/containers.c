/*
 * A description becomes members of a type when that type is first asked for. The node of a list or
 * a tree has no type of its own in most DWARF: it is made of what its pointers lead to, with the
 * value behind, where alignment puts it.
 */
#include "graph/containers.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

#define NODE_MEMBERS (CONTAINER_PLACES + 2)

/* The built-in ones, relative to the directory where make runs. */
__asm__(".pushsection .rodata\n"
	"containers_text: .incbin \"src/graph/containers.txt\"\n"
	".byte 0\n"
	".popsection\n");
extern const char containers_text[] __attribute__((visibility("hidden")));

enum container_key {
	KEY_BEGIN, KEY_END, KEY_SIZE, KEY_CAPACITY, KEY_ROOT, KEY_NEXT, KEY_ALSO, KEY_BASE, KEY_OF,
	KEY_SKIP, KEY_IF, KEY_SLOTS, KEY_HEADER, KEY_FIRST, KEY_BOXED, KEY_NODE, KEY_TABLE,
	KEY_OWN, KEY_BEFORE, KEY_INLINE, KEYS,
};
static const char *const key_name[KEYS] = {
	"begin", "end", "size", "capacity", "root", "next", "also", "base", "of", "skip", "if",
	"slots", "header", "first", "boxed", "node", "table", "own", "before", "inline",
};
static const char *const kind_name[] = {
	[CONTAINER_ARRAY] = "array", [CONTAINER_NODES] = "nodes", [CONTAINER_SWISS] = "swiss",
	[CONTAINER_STRING] = "string", [CONTAINER_WRAPPER] = "wrapper",
	[CONTAINER_POINTER] = "pointer", [CONTAINER_OPTIONAL] = "optional",
	[CONTAINER_VARIANT] = "variant", [CONTAINER_REFERENCE] = "reference",
};

struct container_text {
	char *pattern;
	enum container_kind kind;
	char *value[KEYS];      /* NULL = not given */
};

struct known_container {
	bool is_known;
	struct container *is;   /* NULL = it is none */
};

struct containers {
	VEC(struct container_text) list;
	VEC(struct known_container) by_type;
};

static void free_container_text(struct container_text *d)
{
	free(d->pattern);
	for (size_t i = 0; i < KEYS; i++)
		free(d->value[i]);
}

void containers_free(struct containers *c)
{
	if (!c)
		return;
	vec_release(&c->list, d, free_container_text(d));
	vec_release(&c->by_type, k, free(k->is));
	free(c);
}

struct containers *containers_new(void)
{
	struct containers *c = xcalloc(1, sizeof(*c));
	char *why;

	if (containers_add(c, containers_text, &why) != 0)
		free(why); /* test_typed_walk.c reads the same text */
	return c;
}

/* -- descriptions -- */

static bool parse_key(struct container_text *d, char *word)
{
	char *value = strchr(word, '=');

	if (!value)
		return false;
	*value++ = '\0';
	for (size_t i = 0; i < KEYS; i++)
		if (strcmp(word, key_name[i]) == 0 && *value && !d->value[i]) {
			d->value[i] = xstrdup(value);
			return true;
		}
	return false;
}

/* Whether its members are followed like those of others. */
static bool is_shown_only(enum container_kind kind)
{
	return kind == CONTAINER_WRAPPER || kind == CONTAINER_POINTER;
}

/* Adds the keys in @rest; NULL, or the word that is none. A type's name may have spaces. */
static const char *parse_keys(struct container_text *d, char *rest)
{
	bool is_base = false;
	char *word, *state = NULL;

	for (word = strtok_r(rest, " \t", &state); word; word = strtok_r(NULL, " \t", &state)) {
		if (is_base && !strchr(word, '=')) {
			char *whole = xasprintf("%s %s", d->value[KEY_BASE], word);

			free(d->value[KEY_BASE]);
			d->value[KEY_BASE] = whole;
			continue;
		}
		is_base = text_begins_with(word, "base=");
		if (!parse_key(d, word))
			return word;
	}
	return NULL;
}

static char *parse_line(char *line, struct container_text *d)
{
	char *rest = NULL, *pattern = strtok_r(line, " \t", &rest);
	char *kind = strtok_r(NULL, " \t", &rest);

	*d = (struct container_text){0};
	for (size_t i = 1; kind && i < ARRAY_SIZE(kind_name); i++)
		if (strcmp(kind, kind_name[i]) == 0)
			d->kind = (enum container_kind)i;
	if (!d->kind)
		return xasprintf("%s: it has no kind (array, string, nodes, swiss, optional, "
				 "variant, reference, wrapper or pointer)", pattern);
	const char *wrong = parse_keys(d, rest);

	if (wrong)
		return xasprintf("%s: '%s' is no key with a value, or is repeated", pattern, wrong);
	bool is_nodes = d->kind == CONTAINER_NODES;

	d->pattern = xstrdup(pattern);
	if (is_shown_only(d->kind))
		return NULL;
	if (!d->value[is_nodes ? KEY_ROOT : KEY_BEGIN] && !(is_nodes && d->value[KEY_TABLE]))
		return xasprintf("%s: %s= is missing", pattern, is_nodes ? "root" : "begin");
	if (d->kind == CONTAINER_REFERENCE)
		return d->value[KEY_BASE] ? NULL : xasprintf("%s: base= is missing", pattern);
	if (!is_nodes && !d->value[KEY_END] && !d->value[KEY_SIZE])
		return xasprintf("%s: end= or size= is missing", pattern);
	return NULL;
}

uint32_t containers_add(struct containers *c, const char *text, char **why_out)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *at = copy, *line;
	uint32_t number = 0;
	size_t place = 0;

	while ((line = strsep(&at, "\n"))) {
		struct container_text d;

		number++;
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		char *why = parse_line(line, &d);

		if (why) {
			free_container_text(&d);
			*why_out = why;
			return number;
		}
		*vec_insert(&c->list, place) = d;
		place++;
	}
	vec_release(&c->by_type, k, free(k->is));
	return 0;
}

bool containers_add_file(struct containers *c, const char *path, char **why_out)
{
	_cleanup_free_ char *text = xmalloc(CONTAINERS_FILE_MAX + 1), *why = NULL;
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, CONTAINERS_FILE_MAX + 1, file) : 0;

	if (!file || ferror(file) || size > CONTAINERS_FILE_MAX) {
		*why_out = xasprintf("%s: %s", path, size > CONTAINERS_FILE_MAX ?
				     "it is larger than 1 MiB" : strerror(errno));
		return false;
	}
	text[size] = '\0';
	uint32_t line = containers_add(c, text, &why);

	if (line)
		*why_out = xasprintf("%s:%u: %s", path, line, why);
	return line == 0;
}

bool containers_check_file(const char *path, char **why_out)
{
	struct containers *c = containers_new();
	bool is_good = containers_add_file(c, path, why_out);

	containers_free(c);
	return is_good;
}

/* -- members -- */

/* The members of "a,b,c"; how many there are. */
static uint32_t find_places(struct type_table *t, uint32_t type, const char *paths,
			    struct member_place out[static CONTAINER_PLACES])
{
	uint32_t count = 0;

	while (paths && *paths && count < CONTAINER_PLACES) {
		size_t length = strcspn(paths, ",");
		_cleanup_free_ char *path = xstrndup(paths, length);

		if (type_table_find_place(t, type, path, &out[count]))
			count++;
		paths += length + (paths[length] == ',');
	}
	return count;
}

/* -- one type -- */

static uint32_t number_of(const char *text, uint32_t otherwise)
{
	return text ? (uint32_t)MIN(strtoul(text, NULL, 10), 1000ul) : otherwise;
}

static uint32_t target_of(const struct type_table *t, uint32_t type)
{
	const struct data_type *e = type_table_get(t, type);

	return e->kind == DATA_POINTER ? e->target : TYPE_NONE;
}

/*
 * The node of which pointers lead to @base: its pointers to others, whose names @next has, and a
 * value of type @value.
 */
static uint32_t make_node(struct type_table *t, uint32_t base, const struct container_text *d,
			  uint32_t value)
{
	struct member_place next[CONTAINER_PLACES];
	struct data_member member[NODE_MEMBERS] = {0};
	uint32_t count = find_places(t, base, d->value[KEY_NEXT], next), i;
	uint64_t each = type_table_get(t, value)->size;
	uint64_t align = MAX(type_table_alignment(t, value), UINT64_C(1));
	uint64_t at = type_table_get(t, base)->size + number_of(d->value[KEY_SKIP], 0);
	_cleanup_free_ char *of = type_table_name(t, value), *name = xasprintf("node of %s", of);

	if (count == 0 || each == 0)
		return TYPE_NONE;
	for (i = 0; i < count; i++)
		member[i] = (struct data_member){
			.name = "next", .offset = next[i].offset, .is_resolved = true};
	at = ROUND_UP(at, align);
	member[i++] = (struct data_member){.name = NULL, .offset = at, .type = value,
					   .is_resolved = true};
	uint32_t node = type_table_declare(t, name, at + each, member, i);
	uint32_t pointer = type_table_pointer_to(t, node);

	for (i = 0; i < count; i++)
		type_table_set_member(t, node, i, pointer);
	return node;
}

/*
 * The type of nodes that have one of their own: a template argument, or a template with the
 * arguments of @type, which may be in the midst of its name.
 */
static uint32_t find_own(struct type_table *t, uint32_t type, const struct container_text *d)
{
	const char *arguments = strchr(type_table_get(t, type)->name, '<');
	const char *node = d->value[KEY_NODE];

	if (!node)
		return type_table_argument(t, type, number_of(d->value[KEY_OWN], 0));
	const char *place = strstr(node, "<*>") ?: node + strlen(node);
	_cleanup_free_ char *name = xasprintf("%.*s%s%s", (int)(place - node), node,
					      arguments ?: "", *place ? place + 3 : "");

	return type_table_find(t, NULL, name);
}

/* That node: its pointers to others have the type of what they have in common. */
static uint32_t make_own_node(struct type_table *t, uint32_t type, const struct container_text *d)
{
	uint32_t own = find_own(t, type, d);
	struct member_place next[CONTAINER_PLACES];
	struct data_member member[NODE_MEMBERS] = {0};
	uint32_t count = find_places(t, own, d->value[KEY_NEXT], next), i;

	if (count == 0)
		return TYPE_NONE;
	for (i = 0; i < count; i++)
		member[i] = (struct data_member){
			.name = "next", .offset = next[i].offset, .is_resolved = true};
	member[i++] = (struct data_member){.type = own, .is_resolved = true};
	_cleanup_free_ char *shown = type_table_name(t, own);
	uint32_t node = type_table_declare(t, shown, type_table_get(t, own)->size, member, i);
	uint32_t pointer = type_table_pointer_to(t, node);

	for (i = 0; i < count; i++)
		type_table_set_member(t, node, i, pointer);
	return node;
}

/* Template argument "4" of @type, or "4.0": argument 0 of that. NULL is 0. */
static uint32_t find_argument(struct type_table *t, uint32_t type, const char *of)
{
	const char *inner = of ? strchr(of, '.') : NULL;
	uint32_t found = type_table_argument(t, type, number_of(of, 0));

	return inner ? type_table_argument(t, found, number_of(inner + 1, 0)) : found;
}

static bool read_nodes(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	uint32_t base;

	c->roots = find_places(t, type, d->value[KEY_ROOT], c->root);
	type_table_find_place(t, type, d->value[KEY_TABLE], &c->table);
	if (c->roots == 0 && c->table.type == TYPE_NONE)
		return false;
	if (d->value[KEY_NODE] || d->value[KEY_OWN]) {
		c->node = make_own_node(t, type, d);
		return c->node != TYPE_NONE;
	}
	base = d->value[KEY_BASE] ? type_table_find(t, NULL, d->value[KEY_BASE]) :
				    target_of(t, c->root[0].type);
	c->element = find_argument(t, type, d->value[KEY_OF]);
	c->node = make_node(t, base, d, c->element);
	type_table_find_place(t, type, d->value[KEY_ALSO], &c->also);
	return c->node != TYPE_NONE;
}

/* What a slot of type @slot has: of a union that its value, which is as large. */
static uint32_t slot_element(struct type_table *t, uint32_t slot)
{
	struct member_place value;

	if (type_table_get(t, slot)->kind != DATA_UNION)
		return slot;
	if (!type_table_find_place(t, slot, "value", &value) || value.offset ||
	    type_table_get(t, value.type)->size != type_table_get(t, slot)->size)
		return TYPE_NONE;
	return value.type;
}

/* A member of the header that @c has, or of @type. */
static bool find_member(struct type_table *t, uint32_t type, const char *path,
			const struct container *c, struct member_place *out)
{
	if (!type_table_find_place(t, c->header_type, path, out))
		return type_table_find_place(t, type, path, out);
	out->offset += type_table_get(t, type)->size;
	return true;
}

/* What is between the brackets of its name: GCC has no arguments of extern templates. */
static uint32_t only_argument(struct type_table *t, uint32_t type)
{
	const char *name = type_table_get(t, type)->name, *at = name ? strchr(name, '<') : NULL;
	size_t length = at ? strlen(at + 1) : 0;

	if (length < 2 || at[length] != '>')
		return TYPE_NONE;
	_cleanup_free_ char *argument = xstrndup(at + 1, length - 1);

	return type_table_find(t, NULL, argument);
}

static uint32_t element_of(struct type_table *t, uint32_t type, const struct container_text *d,
			   const struct container *c)
{
	const char *of = d->value[KEY_OF];
	uint32_t element = target_of(t, c->begin.type);
	struct member_place like = {0};

	if (of && strspn(of, "0123456789") == strlen(of)) {
		element = type_table_argument(t, type, number_of(of, 0));
		if (element == TYPE_NONE)
			element = type_table_argument(t, c->header_type, number_of(of, 0));
		if (element == TYPE_NONE)
			element = only_argument(t, type);
	} else if (of) {
		type_table_find_place(t, type, of, &like);
		element = like.type;
	}
	const struct data_type *e = type_table_get(t, element);

	if (d->value[KEY_BOXED] && e->kind == DATA_STRUCT &&
	    e->size > number_of(d->value[KEY_BOXED], 0))
		return type_table_pointer_to(t, element);
	return element;
}

/* Elements that are behind the header. */
static void read_array_head(struct type_table *t, uint32_t type, struct container *c)
{
	uint64_t own = type_table_get(t, type)->size, head = 0;
	enum data_kind kind = type_table_get(t, c->begin.type)->kind;

	if (c->before)
		head = c->before;
	else if (kind == DATA_ARRAY)
		head = c->begin.offset - own;
	else if (kind == DATA_BASE)
		head = ROUND_UP(type_table_get(t, c->header_type)->size,
				MAX(type_table_alignment(t, c->element), UINT64_C(1)));
	if ((c->header_type == TYPE_NONE && !c->before) || head == 0 || head > UINT32_MAX)
		return;
	_cleanup_free_ char *of = type_table_name(t, c->element);
	_cleanup_free_ char *name = xasprintf("array of %s", of);
	const struct data_member member = {.offset = head, .is_resolved = true,
					   .type = type_table_array_of(t, c->element, 0)};

	c->head = (uint32_t)head;
	c->node = type_table_declare(t, name, head, &member, 1);
}

static bool read_array(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	if (!find_member(t, type, d->value[KEY_BEGIN], c, &c->begin))
		return false;
	c->element = element_of(t, type, d, c);
	bool has_end = find_member(t, type, d->value[KEY_END], c, &c->end);

	find_member(t, type, d->value[KEY_CAPACITY], c, &c->capacity);
	find_member(t, type, d->value[KEY_FIRST], c, &c->first);
	type_table_find_place(t, type, d->value[KEY_IF], &c->in_block);
	type_table_find_place(t, type, d->value[KEY_INLINE], &c->in_object);
	c->before = number_of(d->value[KEY_BEFORE], 0);
	read_array_head(t, type, c);
	if (type_table_find_place(t, type, d->value[KEY_SLOTS], &c->slots))
		c->element = slot_element(t, target_of(t, c->slots.type));
	return (has_end || c->size.type != TYPE_NONE) &&
	       type_table_get(t, c->element)->size > 0;
}

/* What has a value in itself, and a number that says whether, or which. */
static bool read_value(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	if (!type_table_find_place(t, type, d->value[KEY_BEGIN], &c->begin) ||
	    c->size.type == TYPE_NONE)
		return false;
	c->element = d->kind == CONTAINER_OPTIONAL ? c->begin.type : TYPE_NONE;
	return true;
}

static struct container *read_container(const struct containers *c, struct type_table *t,
					uint32_t type)
{
	struct container out = {0};
	const char *name = type_table_get(t, type)->name;
	const struct container_text *d = NULL;

	for (size_t i = 0; name && !d && i < c->list.count; i++)
		if (fnmatch(c->list.data[i].pattern, name, FNM_NOESCAPE) == 0)
			d = &c->list.data[i];
	if (!d)
		return NULL;
	out.kind = d->kind;
	if (is_shown_only(d->kind))
		return xmemdup(&out, sizeof(out));
	if (type_table_find_place(t, type, d->value[KEY_HEADER], &out.header))
		out.header_type = target_of(t, out.header.type);
	find_member(t, type, d->value[KEY_SIZE], &out, &out.size);
	if (d->kind == CONTAINER_REFERENCE) {
		out.element = type_table_find(t, NULL, d->value[KEY_BASE]);
		return out.element != TYPE_NONE &&
		       type_table_find_place(t, type, d->value[KEY_BEGIN], &out.begin) ?
			xmemdup(&out, sizeof(out)) : NULL;
	}
	bool is_value = d->kind == CONTAINER_OPTIONAL || d->kind == CONTAINER_VARIANT;
	bool is_good = is_value ? read_value(t, type, d, &out) :
		       d->kind == CONTAINER_NODES ? read_nodes(t, type, d, &out) :
						    read_array(t, type, d, &out);

	return is_good ? xmemdup(&out, sizeof(out)) : NULL;
}

const struct container *containers_find(struct containers *c, struct type_table *t, uint32_t type)
{
	if (type_table_get(t, type)->kind != DATA_STRUCT)
		return NULL;
	while (c->by_type.count <= type)
		*vec_add(&c->by_type) = (struct known_container){0};
	if (!c->by_type.data[type].is_known) {
		c->by_type.data[type].is_known = true; /* also while it is being read */
		struct container *is = read_container(c, t, type);

		c->by_type.data[type].is = is;
	}
	return c->by_type.data[type].is;
}

const char *containers_whole(struct containers *c, struct type_table *t, uint32_t type)
{
	const struct container *is = containers_find(c, t, type);

	switch (is ? is->kind : CONTAINER_NONE) {
	case CONTAINER_NONE:
		return NULL;
	case CONTAINER_STRING:
	case CONTAINER_POINTER:
	case CONTAINER_OPTIONAL:
	case CONTAINER_VARIANT:
	case CONTAINER_REFERENCE:
		return "";
	default:
		return "[*]";
	}
}
