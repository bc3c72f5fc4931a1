/*
 * An object is opened once, and found again by its data in a recording. A file that cannot be used
 * then is not looked for again. Objects are at other addresses in each process, so their number
 * grows as long as there are new processes: if there are many, all are forgotten. See
 * recording_resolve.h.
 */
#include "recording/recording_resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/types.h"
#include "recording/recording_build.h"
#include "tracee/state/module.h"

#define MANY_OBJECTS 1024u /* and more than a recording has */

struct known_object {
	struct module *module; /* owned; its file: NULL = it cannot be used */
	char *build_id;        /* hexadecimal; owned */
	uint64_t offset;
};

struct name_resolver {
	struct symbols *symbols;
	const struct filter *filter;
	struct elf_files files; /* those that the same object of several processes shares */
	VEC(struct known_object) known;
};

struct name_resolver *name_resolver_new(struct symbols *symbols, const struct filter *filter)
{
	struct name_resolver *l = xcalloc(1, sizeof(*l));

	l->symbols = symbols;
	l->filter = filter;
	return l;
}

static void forget_objects(struct name_resolver *l)
{
	for (size_t i = 0; i < l->known.count; i++) {
		module_release(l->known.data[i].module);
		free(l->known.data[i].build_id);
	}
	vec_deinit(&l->known);
}

void name_resolver_free(struct name_resolver *l)
{
	forget_objects(l);
	elf_files_deinit(&l->files);
	free(l);
}

/* -- files -- */

static bool has_build_id(const struct elf_file *file, const char *hex)
{
	size_t n = strlen(hex) / 2;

	if (!n || n > file->build_id_size)
		return false;
	for (size_t i = 0; i < n; i++) {
		char byte[3];

		snprintf(byte, sizeof(byte), "%02x", file->build_id[i]);
		if (memcmp(byte, hex + 2 * i, 2) != 0)
			return false;
	}
	return true;
}

/* @files: NULL = it is not shared. */
static struct elf_file *open_in(struct elf_files *files, const char *name,
				const struct known_object *o)
{
	struct elf_file *file;

	if (elf_file_open(files, name, o->module->path, &file) != 0)
		return NULL;
	if (has_build_id(file, o->build_id))
		return file;
	elf_file_release(file);
	return NULL;
}

/* A file whose contents were replaced may be open as it was before. */
static struct elf_file *open_if_same(struct name_resolver *l, const char *name,
				     const struct known_object *o)
{
	struct elf_file *file = open_in(&l->files, name, o);

	return file ? file : open_in(NULL, name, o);
}

/* A program that was replaced while it runs is still there as exe. */
static struct elf_file *find_file(struct name_resolver *l, const struct known_object *o,
				  uint32_t pid)
{
	const char *path = o->module->path;
	struct elf_file *file;

	if (*path != '/' || !*o->build_id)
		return NULL;
	_cleanup_free_ char *seen = xasprintf("/proc/%u/root%s", pid, path);
	_cleanup_free_ char *program = xasprintf("/proc/%u/exe", pid);

	file = open_if_same(l, seen, o);
	if (!file)
		file = open_if_same(l, program, o);
	return file ? file : open_if_same(l, path, o);
}

/* The module begins at @offset of the file. */
static taddr_t bias_of(const struct module *m, uint64_t offset)
{
	for (size_t i = 0; i < m->file->segment_count; i++) {
		const struct elf_segment *s = &m->file->segment[i];

		if (offset >= ROUND_DOWN(s->offset, (uint64_t)PAGE_SIZE_MIN) &&
		    offset < s->offset + s->filesz)
			return m->start - offset - (s->vaddr - s->offset);
	}
	return m->start - offset;
}

/* -- objects -- */

static const char *text_of(const struct recording *r, size_t row, unsigned column)
{
	return r->text.data[recording_get(r, RECORDING_OBJECTS, row, column)];
}

static bool is_row(const struct known_object *o, const struct recording *r, size_t row)
{
	return o->module->start == recording_get(r, RECORDING_OBJECTS, row, OBJECT_START) &&
	       o->offset == recording_get(r, RECORDING_OBJECTS, row, OBJECT_OFFSET) &&
	       strcmp(o->module->path, text_of(r, row, OBJECT_PATH)) == 0 &&
	       strcmp(o->build_id, text_of(r, row, OBJECT_BUILD_ID)) == 0;
}

static const struct module *module_of(struct name_resolver *l, const struct recording *r,
				      size_t row, uint32_t pid)
{
	for (size_t i = 0; i < l->known.count; i++) {
		if (is_row(&l->known.data[i], r, row))
			return l->known.data[i].module;
	}
	struct known_object *o = vec_add(&l->known);
	struct module *m = xcalloc(1, sizeof(*m));

	*o = (struct known_object){
		.module = m,
		.build_id = xstrdup(text_of(r, row, OBJECT_BUILD_ID)),
		.offset = recording_get(r, RECORDING_OBJECTS, row, OBJECT_OFFSET),
	};
	m->users = 1;
	m->id = (uint32_t)l->known.count;
	m->path = xstrdup(text_of(r, row, OBJECT_PATH));
	m->start = recording_get(r, RECORDING_OBJECTS, row, OBJECT_START);
	m->end = recording_get(r, RECORDING_OBJECTS, row, OBJECT_END);
	m->file = find_file(l, o, pid);
	if (m->file)
		m->bias = bias_of(m, o->offset);
	return m;
}

/* -- frames and nodes -- */

struct filling {
	struct name_resolver *lines;
	struct recording *r;
	const struct module **module;    /* by object row; its file is there, or NULL */
	struct recording_table frames, nodes; /* as they were */
	size_t *frame, *node;            /* by old row: the first new one; the last one + 1 */
};

static void copy_frame(struct filling *f, size_t row)
{
	uint64_t value[FRAME_COLUMNS];

	for (unsigned c = 0; c < FRAME_COLUMNS; c++)
		value[c] = f->frames.column[c][row];
	recording_add(f->r, RECORDING_FRAMES, value);
}

static void name_frame(struct filling *f, size_t row)
{
	uint64_t object = f->frames.column[FRAME_OBJECT][row];
	const struct module *m = object ? f->module[object - 1] : NULL;
	const struct recording_place place = {
		object, f->frames.column[FRAME_ADDRESS][row], f->lines->filter};

	f->frame[row] = recording_rows(f->r, RECORDING_FRAMES);
	if (!m) {
		copy_frame(f, row);
		return;
	}
	const struct symbol *s =
		symbols_find(f->lines->symbols, m, place.address, SYMBOL_REAL);

	if (!symbol_is_startup(s))
		s = symbols_find(f->lines->symbols, m, place.address, SYMBOL_ALL);
	recording_names_add(f->r, &place, s);
}

/* A node for each function at the address of the old one. */
static void add_nodes(struct filling *f, size_t row)
{
	uint64_t old_parent = f->nodes.column[NODE_PARENT][row];
	size_t old_frame = f->nodes.column[NODE_FRAME][row];
	size_t end = old_frame + 1 < f->frames.rows ? f->frame[old_frame + 1] :
						      recording_rows(f->r, RECORDING_FRAMES);
	uint64_t parent = old_parent ? f->node[old_parent - 1] : 0;

	for (size_t frame = f->frame[old_frame]; frame < end; frame++) {
		const uint64_t node[NODE_COLUMNS] = {parent, frame};

		recording_add(f->r, RECORDING_NODES, node);
		parent = recording_rows(f->r, RECORDING_NODES);
	}
	f->node[row] = parent;
}

static void move_references(struct filling *f, enum recording_table_id id, unsigned column)
{
	uint64_t *value = f->r->table[id].column[column];

	for (size_t i = 0; i < f->r->table[id].rows; i++)
		value[i] = value[i] ? f->node[value[i] - 1] : 0;
}

static struct recording_table take_table(struct recording *r, enum recording_table_id id)
{
	struct recording_table t = r->table[id];

	r->table[id] = (struct recording_table){0};
	return t;
}

static void free_table(struct recording_table *t)
{
	for (int c = 0; c < RECORDING_MAX_COLUMNS; c++)
		free(t->column[c]);
}

static void find_modules(struct filling *f, uint32_t pid)
{
	size_t n = recording_rows(f->r, RECORDING_OBJECTS);

	f->module = xcalloc(n + 1, sizeof(*f->module));
	for (size_t i = 0; i < n; i++) {
		const struct module *m = module_of(f->lines, f->r, i, pid);

		f->module[i] = m->file ? m : NULL;
	}
}

void recording_resolve(struct name_resolver *l, struct recording *r, uint32_t pid)
{
	struct filling f = {.lines = l, .r = r};

	if (l->known.count >= MAX(MANY_OBJECTS, recording_rows(r, RECORDING_OBJECTS))) {
		forget_objects(l);
		symbols_forget(l->symbols);
	}
	find_modules(&f, pid);
	f.frames = take_table(r, RECORDING_FRAMES);
	f.nodes = take_table(r, RECORDING_NODES);
	f.frame = xcalloc(f.frames.rows + 1, sizeof(*f.frame));
	f.node = xcalloc(f.nodes.rows + 1, sizeof(*f.node));
	for (size_t i = 0; i < f.frames.rows; i++)
		name_frame(&f, i);
	for (size_t i = 0; i < f.nodes.rows; i++)
		add_nodes(&f, i);
	move_references(&f, RECORDING_LEAVES, LEAF_NODE);
	move_references(&f, RECORDING_RELEASES, RELEASE_NODE);
	free_table(&f.frames);
	free_table(&f.nodes);
	free(f.frame);
	free(f.node);
	free(f.module);
}
