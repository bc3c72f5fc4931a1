/*
 * Names form a tree: functions below the root, places ("file:line") below their function. A place
 * is marked for each side that has a frame there.
 */
#include "report/frame_match.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

#define PROGRAM "[program]" /* matched with itself, whatever its file name */

struct frame_match {
	struct path_tree *names;
	bool is_exact;
	VEC(uint32_t) node[2];     /* by side and frame: the node of its place, or function */
	VEC(uint32_t) number;      /* by node: of the function, or of the place in its function */
	VEC(uint32_t) function;    /* by number: its node */
	VEC(char *) site;          /* by number: its name; owned */
	VEC(uint32_t) site_of;     /* by node: number of its site */
	bool *is_moved;            /* by node, of functions: their lines are not comparable */
	uint32_t program;          /* the node of nameless frames of the program; 0 = none */
	char *program_name;        /* "[prog]": its name in the new profile, if there is any */
};

struct frame_match *frame_match_new(bool is_exact)
{
	struct frame_match *m = xcalloc(1, sizeof(*m));

	m->is_exact = is_exact;
	m->names = path_tree_new();
	return m;
}

void frame_match_free(struct frame_match *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->site.count; i++)
		free(m->site.data[i]);
	path_tree_free(m->names);
	vec_deinit(&m->node[PATH_OLD]);
	vec_deinit(&m->node[PATH_NEW]);
	vec_deinit(&m->number);
	vec_deinit(&m->function);
	vec_deinit(&m->site);
	vec_deinit(&m->site_of);
	free(m->is_moved);
	free(m->program_name);
	free(m);
}

/* -- names -- */

/* Without the suffix of a compiler's clone. */
static size_t size_without_clone(const char *name)
{
	static const char *const suffixes[] = {".part", ".constprop", ".isra", ".cold",
					       ".lto_priv", ".localalias", ".llvm"};
	size_t size = text_size_without_clone(name);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		const char *at = strstr(name, suffixes[i]);
		char next = at ? at[strlen(suffixes[i])] : 'x';

		if (at && at > name && (next == '.' || !next))
			size = MIN(size, (size_t)(at - name));
	}
	return size;
}

/* The length of Rust's "::h0123456789abcdef" at the end of @name; 0: there is none. */
static size_t hash_size(const char *name)
{
	size_t size = strlen(name), n = strlen("::h0123456789abcdef");

	if (size <= n || strncmp(name + size - n, "::h", 3) != 0)
		return 0;
	return strspn(name + size - n + 3, "0123456789abcdef") == n - 3 ? n : 0;
}

/* How many digits at @s, which @begin is the text of, are of "{lambda()#1}" or "$_1". */
static size_t generated_digits(const char *begin, const char *s)
{
	size_t digits = strspn(s, "0123456789");
	bool is_lambda = s > begin && s[-1] == '#' && s[digits] == '}';
	bool is_clang = s >= begin + 2 && s[-1] == '_' && s[-2] == '$';

	return is_lambda || is_clang ? digits : 0;
}

/* @name without what is generated. The caller frees it. */
static char *stable_name(const char *name, size_t size)
{
	_cleanup_free_ char *whole = xstrndup(name, size);
	char *text = xstrdup(whole), *to = text;

	whole[strlen(whole) - hash_size(whole)] = '\0';
	for (const char *s = whole; *s; s++) {
		size_t skipped = isdigit((unsigned char)*s) ? generated_digits(whole, s) : 0;

		to -= skipped && s[-1] == '#';
		if (skipped)
			s += skipped - 1;
		else
			*to++ = *s;
	}
	*to = '\0';
	return text;
}

/* "[libz.so]" for /lib/libz.so.1.3: the name of a library in all versions. */
static char *object_name(const char *object)
{
	const char *base = text_base_name(object), *so = strstr(base, ".so");

	if (so && (!so[3] || so[3] == '.'))
		return xasprintf("[%.*s]", (int)(so + 3 - base), base);
	return xstrdup(*base == '[' ? base : PROGRAM);
}

static char *function_name(const struct frame_match *m, const struct match_frame *f)
{
	if (f->function) {
		size_t size = size_without_clone(f->function);

		return m->is_exact ? xstrndup(f->function, size) : stable_name(f->function, size);
	}
	if (f->file)
		return xasprintf("[%s]", text_base_name(f->file));
	return f->object ? object_name(f->object) : xstrdup("[unknown]");
}

/* NULL = unknown, or part of the function's name. */
static char *place_name(const struct match_frame *f)
{
	if (f->file && f->line)
		return xasprintf("%s:%" PRIu64, text_base_name(f->file), f->line);
	if (!f->function)
		return NULL;
	if (f->file)
		return xstrdup(text_base_name(f->file));
	return f->object ? xasprintf("in %s", text_base_name(f->object)) : NULL;
}

static void note_program(struct frame_match *m, enum path_side side, uint32_t node,
			 const char *object)
{
	if (m->program && side == PATH_OLD)
		return;
	free(m->program_name);
	m->program = node;
	m->program_name = xasprintf("[%s]", text_base_name(object));
}

/* The displayed name of the function of @node. */
static const char *shown_name(const struct frame_match *m, uint32_t node)
{
	return node && node == m->program ? m->program_name : path_tree_node(m->names, node)->name;
}

void frame_match_add(struct frame_match *m, enum path_side side, const struct match_frame *f)
{
	_cleanup_free_ char *function = function_name(m, f), *place = place_name(f);
	uint32_t node = path_tree_child(m->names, 0, function, strlen(function));

	if (!f->function && !f->file && f->object && strcmp(function, PROGRAM) == 0)
		note_program(m, side, node, f->object);
	if (place)
		node = path_tree_child(m->names, node, place, strlen(place));
	path_tree_add(m->names, node, side, 1);
	if (f->is_same_build)
		path_tree_add(m->names, node, side == PATH_NEW ? PATH_OLD : PATH_NEW, 1);
	*vec_add(&m->node[side]) = node;
}

/* -- sites -- */

static uint32_t function_node(const struct frame_match *m, uint32_t node)
{
	uint32_t parent = path_tree_node(m->names, node)->parent;

	return parent ? parent : node;
}

/* Whether both sides have @function, but in different places. */
static bool is_moved(const struct frame_match *m, uint32_t function)
{
	const struct path_node *f = path_tree_node(m->names, function);

	if (!f->total[PATH_OLD] || !f->total[PATH_NEW])
		return false;
	if (!f->own[PATH_OLD] != !f->own[PATH_NEW])
		return true;
	for (uint32_t c = f->first_child; c; c = path_tree_node(m->names, c)->next_sibling) {
		const struct path_node *place = path_tree_node(m->names, c);

		if (!place->own[PATH_OLD] || !place->own[PATH_NEW])
			return true;
	}
	return false;
}

static uint32_t add_site(struct frame_match *m, uint32_t function, uint32_t place)
{
	const char *name = shown_name(m, function);

	*vec_add(&m->site) = place ? xasprintf("%s (%s)", name,
					       path_tree_node(m->names, place)->name) :
				     xstrdup(name);
	return (uint32_t)m->site.count - 1;
}

/* A function precedes its places. */
static void add_node(struct frame_match *m, uint32_t node)
{
	uint32_t function = function_node(m, node), site = 0;
	uint32_t number = (uint32_t)m->function.count;

	if (node && node == function) {
		m->is_moved[node] = is_moved(m, node);
		site = add_site(m, node, 0);
		*vec_add(&m->function) = node;
	} else if (node) {
		number = m->number.data[function];
		site = m->is_moved[function] ? m->site_of.data[function] :
					       add_site(m, function, node);
	}
	*vec_add(&m->number) = number;
	*vec_add(&m->site_of) = site;
}

void frame_match_finish(struct frame_match *m)
{
	uint32_t count = path_tree_node_count(m->names);

	path_tree_sum(m->names);
	m->is_moved = xcalloc(count, sizeof(*m->is_moved));
	for (uint32_t i = 0; i < count; i++)
		add_node(m, i);
}

/* -- frames -- */

uint32_t frame_match_function(const struct frame_match *m, enum path_side side, size_t frame)
{
	return m->number.data[m->node[side].data[frame]];
}

uint32_t frame_match_site(const struct frame_match *m, enum path_side side, size_t frame)
{
	return m->site_of.data[m->node[side].data[frame]];
}

uint32_t frame_match_function_count(const struct frame_match *m)
{
	return (uint32_t)m->function.count;
}

uint32_t frame_match_site_count(const struct frame_match *m)
{
	return (uint32_t)m->site.count;
}

const char *frame_match_name(const struct frame_match *m, uint32_t function)
{
	return shown_name(m, m->function.data[function]);
}

const char *frame_match_site_name(const struct frame_match *m, uint32_t site)
{
	return m->site.data[site];
}

const char *frame_match_place(const struct frame_match *m, enum path_side side, size_t frame)
{
	uint32_t node = m->node[side].data[frame], function = function_node(m, node);

	return node != function && m->is_moved[function] ? path_tree_node(m->names, node)->name :
							   NULL;
}
