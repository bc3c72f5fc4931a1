/* Falls back to the object's file if its headers are not in the core. */
#include "session/core_modules.h"

#include <string.h>

#include "base/elf_file.h"
#include "base/log.h"
#include "inspect/core_object.h"
#include "tracee/state/module.h"

struct finder {
	const struct core_file *core;
	const char *program;
	struct inspect_input *in;
	struct core_modules *out;
};

/* The end of the last mapping of the file whose first mapping is number @i. */
static taddr_t find_end(const struct inspect_input *in, size_t i, bool *is_exec_out)
{
	const struct map *list = in->resident.maps.list.data, *first = &list[i];
	taddr_t end = first->end;

	for (*is_exec_out = false; i < in->resident.maps.list.count; i++) {
		bool is_same = strcmp(list[i].path, first->path) == 0;

		if (*list[i].path && !is_same)
			break;
		*is_exec_out |= is_same && list[i].is_exec;
		end = is_same ? list[i].end : end;
	}
	return end;
}

static bool is_same_object(const struct elf_file *file, const struct core_object *o)
{
	return o->build_id_size == 0 ||
	       (file->build_id && file->build_id_size == o->build_id_size &&
		memcmp(file->build_id, o->build_id, o->build_id_size) == 0);
}

static struct elf_file *open_file(const struct finder *f, const struct map *first, taddr_t end,
				  const struct core_object *o)
{
	taddr_t entry = f->core->entry;
	bool is_program = entry >= first->start && entry < end;
	const char *path = is_program && f->program ? f->program : first->path;
	struct elf_file *file;

	if (elf_file_open(NULL, path, first->path, &file) != 0) {
		log_verbose("%s: cannot be read: its symbols are unknown", path);
		return NULL;
	}
	if (is_same_object(file, o))
		return file;
	if (path == f->program)
		log_warn("%s is not the program of the core: their build-ids differ", path);
	else
		log_verbose("%s is not the file that the process had: its build-id differs", path);
	elf_file_release(file);
	return NULL;
}

/* gcore leaves code out, and the list of mapped files does not say what it was. */
static void add_segment(struct finder *f, taddr_t start, taddr_t end, bool is_exec)
{
	struct maps *maps = &f->in->resident.maps;

	inspect_add_segment(f->in, start, end);
	for (size_t i = vec_search(&maps->list, e, e->end <= start);
	     i < maps->list.count && maps->list.data[i].start < end; i++)
		maps->list.data[i].is_exec |= is_exec;
}

static void add_segments(struct finder *f, const struct module *m, const struct core_object *o)
{
	for (size_t i = 0; i < o->segments; i++)
		add_segment(f, o->segment[i].start, o->segment[i].end, o->segment[i].is_exec);
	for (size_t i = 0; m->file && o->segments == 0 && i < m->file->segment_count; i++) {
		const struct elf_segment *s = &m->file->segment[i];
		taddr_t start = m->bias + s->vaddr;

		add_segment(f, start, start + s->memsz, s->is_exec);
	}
}

static taddr_t bias_of(const struct elf_file *file, const struct map *first)
{
	const struct elf_segment *s = file->segment;

	return first->start - ROUND_DOWN(s->vaddr - s->offset, (taddr_t)PAGE_SIZE_MIN);
}

static void add_module(struct finder *f, size_t i)
{
	const struct map *first = &f->in->resident.maps.list.data[i];
	bool is_exec;
	taddr_t end = find_end(f->in, i, &is_exec);
	struct core_object object = {0};
	bool is_object = core_object_read(f->core, first->start, &object);

	if (!is_object && !is_exec)
		return;
	struct module *m = xcalloc(1, sizeof(*m));

	*m = (struct module){.id = (uint32_t)i + 1, .users = 1, .start = first->start, .end = end,
			     .bias = object.bias, .path = xstrdup(first->path)};
	m->file = open_file(f, first, end, &object);
	if (m->file && !is_object && m->file->segment_count > 0)
		m->bias = bias_of(m->file, first);
	f->out->missing += !m->file;
	add_segments(f, m, &object);
	*vec_add(&f->out->held.list) = m;
}

void core_modules_find(const struct core_file *c, const char *program, struct inspect_input *in,
		       struct core_modules *out)
{
	struct finder f = {c, program, in, out};

	*out = (struct core_modules){0};
	for (size_t i = 0; i < in->resident.maps.list.count; i++) {
		const struct map *m = &in->resident.maps.list.data[i];

		if (*m->path == '/' && m->offset == 0 && !m->is_shared)
			add_module(&f, i);
	}
}
