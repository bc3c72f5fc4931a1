/* The ELF file of a module, and its load bias. */
#include "tracee/state/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/vec.h"
#include "tracee/os/maps.h"
#include "tracee/state/probe.h"
#include "tracee/state/registry.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"

bool module_hides(const struct module *m, taddr_t pc)
{
	if (!m->hides_new || !m->sites)
		return false;
	for (size_t i = 0; i < m->sites->list.count; i++) {
		const struct probe_site *site = &m->sites->list.data[i];
		if (probe_is_cxx(site->probe) && pc - m->bias - site->vaddr < site->size)
			return true;
	}
	return false;
}

struct module *module_hold(struct module *m)
{
	m->users++;
	return m;
}

void module_release(struct module *m)
{
	if (--m->users > 0)
		return;
	elf_file_release(m->file);
	if (m->sites)
		vec_deinit(&m->sites->list);
	free(m->sites);
	if (m->syscalls)
		m->free_syscalls(m->syscalls);
	if (m->markers)
		m->free_markers(m->markers);
	free(m->path);
	free(m);
}

static int open_vdso(const struct address_space *s, const struct map *map, struct elf_file **out)
{
	size_t size = map->end - map->start;
	_cleanup_free_ uint8_t *image = xmalloc(size);
	int rc = space_read(s, map->start, image, size);
	if (rc != 0)
		return rc;
	uint8_t *p = image;
	image = NULL;
	return elf_file_open_memory(p, size, "[vdso]", out);
}

/*
 * Opens the file of @map, in the target's own mount namespace. A deleted file is still accessible
 * under map_files, if permitted (and as exe, if it is that).
 */
static int open_mapped_file(const struct address_space *s, const struct map *map,
			    struct elf_file **out)
{
	struct elf_files *files = &s->registry->files;
	char name[64];
	_cleanup_free_ char *path =
		xasprintf("/proc/%d/root%s", (int)s->processes.reader, map->path);
	int rc = -ENOENT;
	if (!map->is_deleted)
		rc = elf_file_open(files, path, map->path, out);
	if (rc != 0) {
		snprintf(name, sizeof(name), "/proc/%d/map_files/%lx-%lx", (int)s->processes.reader,
			 (unsigned long)map->start, (unsigned long)map->end);
		rc = elf_file_open(files, name, map->path, out);
	}
	if (rc == 0 && (*out)->ino != map->ino) {
		/* replaced under the same name: not the mapped file */
		elf_file_release(*out);
		rc = -ENOENT;
	}
	if (rc != 0) {
		struct elf_file *file;
		snprintf(name, sizeof(name), "/proc/%d/exe", (int)s->processes.reader);
		if (elf_file_open(files, name, map->path, &file) == 0) {
			if (file->ino == map->ino) {
				*out = file;
				return 0;
			}
			elf_file_release(file);
		}
	}
	return rc;
}

/* The load bias implied by @map (executable) and the segment that it maps. */
static bool map_bias(const struct elf_file *file, const struct map *map, taddr_t *out)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *seg = &file->segment[i];
		uint64_t first = ROUND_DOWN(seg->offset, (uint64_t)PAGE_SIZE_MIN);
		if (!seg->is_exec || map->offset < first ||
		    map->offset >= seg->offset + seg->filesz)
			continue;
		*out = map->start - map->offset - (seg->vaddr - seg->offset);
		return true;
	}
	return false;
}

/* Creates the module whose executable map is @map. It may lack a readable file. */
struct module *module_open(const struct address_space *s, const struct map *map)
{
	struct module *m = xcalloc(1, sizeof(*m));
	m->users = 1;
	m->is_vdso = strcmp(map->path, "[vdso]") == 0;
	m->path = xstrdup(map->path);
	m->start = map->start;
	m->end = map->end;
	int rc = m->is_vdso ? open_vdso(s, map, &m->file) : open_mapped_file(s, map, &m->file);
	if (rc != 0) {
		m->file = NULL;
		m->bias = map->start - map->offset;
		log_debug("%s: cannot be read: %s", map->path, strerror(-rc));
		return m;
	}
	if (m->is_vdso && m->file->segment_count > 0)
		m->bias = map->start - m->file->segment[0].vaddr + m->file->segment[0].offset;
	else if (!map_bias(m->file, map, &m->bias))
		m->bias = map->start - map->offset;
	return m;
}
