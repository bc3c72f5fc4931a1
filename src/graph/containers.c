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

#define BASES_MAX 8u
#define BASE_LEVELS 5u
#define NODE_MEMBERS (CONTAINER_PLACES + 2)

/* The built-in ones, relative to the directory where make runs. */
__asm__(".pushsection .rodata\n"
	"containers_text: .incbin \"src/graph/containers.txt\"\n"
	".byte 0\n"
	".popsection\n");
extern const char containers_text[] __attribute__((visibility("hidden")));

enum container_key {
	KEY_BEGIN, KEY_END, KEY_SIZE, KEY_CAPACITY, KEY_ROOT, KEY_NEXT, KEY_ALSO, KEY_BASE, KEY_OF,
	KEY_SKIP, KEYS,
};
static const char *const key_name[KEYS] = {
	"begin", "end", "size", "capacity", "root", "next", "also", "base", "of", "skip",
};
static const char *const kind_name[] = {
	[CONTAINER_ARRAY] = "array", [CONTAINER_NODES] = "nodes", [CONTAINER_SWISS] = "swiss",
	[CONTAINER_STRING] = "string", [CONTAINER_WRAPPER] = "wrapper",
	[CONTAINER_POINTER] = "pointer",
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
		return xasprintf("%s: it has no kind (array, string, nodes, swiss, wrapper or "
				 "pointer)", pattern);
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

/* A name that is looked for in a struct, and in so many levels of its bases. */
struct member_name {
	const char *text;
	size_t length;
	uint32_t levels;
};

/* Member @n of @type or its bases. False: there is none. */
static bool find_member(struct type_table *t, uint32_t type, struct member_name n,
			struct container_place *out)
{
	struct container_place inner;

	for (uint32_t i = 0; i < type_table_get(t, type)->members; i++) {
		const struct data_member *m = type_table_member(t, type, i);

		if (m->name && strncmp(m->name, n.text, n.length) == 0 && !m->name[n.length]) {
			uint64_t offset = m->offset;

			*out = (struct container_place){offset, type_table_member_type(t, type, i)};
			return true;
		}
	}
	static const uint16_t no = MEMBER_VIRTUAL | MEMBER_VARIANT;

	if (n.levels-- == 0)
		return false;
	for (uint32_t i = 0; i < MIN(type_table_get(t, type)->members, BASES_MAX); i++) {
		const struct data_member *m = type_table_member(t, type, i);
		bool is_open = (m->flags & MEMBER_BASE || !m->name) && !(m->flags & no);
		uint64_t offset = m->offset;
		uint32_t base = is_open ? type_table_member_type(t, type, i) : TYPE_NONE;

		if (base == TYPE_NONE || !find_member(t, base, n, &inner))
			continue;
		*out = (struct container_place){offset + inner.offset, inner.type};
		return true;
	}
	return false;
}

/* "a.b.c" in @type, @length characters. */
static bool find_path(struct type_table *t, uint32_t type, const char *path, size_t length,
		      struct container_place *out)
{
	struct container_place whole = {.type = type}, next;

	while (length > 0) {
		size_t part = strcspn(path, ".");

		part = MIN(part, length);
		const struct member_name n = {path, part, BASE_LEVELS};

		if (part == 0 || !find_member(t, whole.type, n, &next))
			return false;
		whole = (struct container_place){whole.offset + next.offset, next.type};
		length -= MIN(part + 1, length);
		path += part + 1;
	}
	*out = whole;
	return true;
}

/* The first of "a.b|c.d" that @type has. Without a path, *out is left as it is. */
static bool find_place(struct type_table *t, uint32_t type, const char *path,
		       struct container_place *out)
{
	while (path && *path) {
		size_t length = strcspn(path, "|");

		if (find_path(t, type, path, length, out))
			return true;
		path += length + (path[length] == '|');
	}
	return false;
}

/* The members of "a,b,c"; how many there are. */
static uint32_t find_places(struct type_table *t, uint32_t type, const char *paths,
			    struct container_place out[static CONTAINER_PLACES])
{
	uint32_t count = 0;

	while (paths && *paths && count < CONTAINER_PLACES) {
		size_t length = strcspn(paths, ",");
		_cleanup_free_ char *path = xstrndup(paths, length);

		if (find_place(t, type, path, &out[count]))
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
	struct container_place next[CONTAINER_PLACES];
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
	find_place(t, type, d->value[KEY_ALSO], &c->also);
	return c->node != TYPE_NONE;
}

static bool read_array(struct type_table *t, uint32_t type, const struct container_text *d,
		       struct container *c)
{
	if (!find_place(t, type, d->value[KEY_BEGIN], &c->begin))
		return false;
	c->element = target_of(t, c->begin.type);
	if (d->value[KEY_OF])
		c->element = type_table_argument(t, type, number_of(d->value[KEY_OF], 0));
	bool has_end = find_place(t, type, d->value[KEY_END], &c->end);

	find_place(t, type, d->value[KEY_CAPACITY], &c->capacity);
	return (has_end || c->size.type != TYPE_NONE) &&
	       type_table_get(t, c->element)->size > 0;
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
	find_place(t, type, d->value[KEY_SIZE], &out.size);
	bool is_good = d->kind == CONTAINER_NODES ? read_nodes(t, type, d, &out) :
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

	if (!is)
		return NULL;
	return is->kind == CONTAINER_STRING || is->kind == CONTAINER_POINTER ? "" : "[*]";
}
