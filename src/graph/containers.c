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
	KEY_SKIP, KEY_IF, KEY_SLOTS, KEYS,
};
static const char *const key_name[KEYS] = {
	"begin", "end", "size", "capacity", "root", "next", "also", "base", "of", "skip", "if",
	"slots",
};
static const char *const kind_name[] = {
	[CONTAINER_ARRAY] = "array", [CONTAINER_NODES] = "nodes", [CONTAINER_SWISS] = "swiss",
	[CONTAINER_STRING] = "string", [CONTAINER_WRAPPER] = "wrapper",
	[CONTAINER_POINTER] = "pointer", [CONTAINER_OPTIONAL] = "optional",
	[CONTAINER_VARIANT] = "variant",
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

static char *parse_line(char *line, struct container_text *d)
{
	char *rest = NULL, *pattern = strtok_r(line, " \t", &rest);
	char *kind = strtok_r(NULL, " \t", &rest), *word;

	*d = (struct container_text){0};
	for (size_t i = 1; kind && i < ARRAY_SIZE(kind_name); i++)
		if (strcmp(kind, kind_name[i]) == 0)
			d->kind = (enum container_kind)i;
	if (!d->kind)
		return xasprintf("%s: it has no kind (array, string, nodes, swiss, optional, "
				 "variant, wrapper or pointer)", pattern);
	while ((word = strtok_r(NULL, " \t", &rest)))
		if (!parse_key(d, word))
			return xasprintf("%s: '%s' is no key with a value, or is repeated",
					 pattern, word);
	bool is_nodes = d->kind == CONTAINER_NODES;

	d->pattern = xstrdup(pattern);
	if (is_shown_only(d->kind))
		return NULL;
	if (!d->value[is_nodes ? KEY_ROOT : KEY_BEGIN])
		return xasprintf("%s: %s= is missing", pattern, is_nodes ? "root" : "begin");
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

static bool read_nodes(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	uint32_t base;

	c->roots = find_places(t, type, d->value[KEY_ROOT], c->root);
	if (c->roots == 0)
		return false;
	base = d->value[KEY_BASE] ? type_table_find(t, NULL, d->value[KEY_BASE]) :
				    target_of(t, c->root[0].type);
	c->element = type_table_argument(t, type, number_of(d->value[KEY_OF], 0));
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

static bool read_array(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	if (!type_table_find_place(t, type, d->value[KEY_BEGIN], &c->begin))
		return false;
	c->element = target_of(t, c->begin.type);
	if (d->value[KEY_OF])
		c->element = type_table_argument(t, type, number_of(d->value[KEY_OF], 0));
	bool has_end = type_table_find_place(t, type, d->value[KEY_END], &c->end);

	type_table_find_place(t, type, d->value[KEY_CAPACITY], &c->capacity);
	type_table_find_place(t, type, d->value[KEY_IF], &c->in_block);
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
	type_table_find_place(t, type, d->value[KEY_SIZE], &out.size);
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
		return "";
	default:
		return "[*]";
	}
}
