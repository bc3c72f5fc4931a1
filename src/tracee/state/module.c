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
#include "tracee/state/vdso.h"

/* The longest build-id accepted; real ones have 8 to 32 bytes. */
#define BUILD_ID_MAX 64

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
		vec_deinit(&m->sites->list), vec_deinit(&m->sites->again);
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
	int rc = vdso_read(s, map, image);
	if (rc != 0)
		return rc;
	uint8_t *p = image;
	image = NULL;
	return elf_file_open_image(&s->registry->files, p, size, "[vdso]", out);
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

/* Whether the build-id of @file is also in the memory where @map is. */
static bool has_mapped_id(const struct address_space *s, const struct map *map,
			  const struct elf_file *file)
{
	taddr_t bias;
	uint8_t id[BUILD_ID_MAX];
	size_t size = file->build_id_size;
	return size > 0 && size <= sizeof(id) && map_bias(file, map, &bias) &&
	       space_read(s, bias + file->build_id_vaddr, id, size) == 0 &&
	       memcmp(id, file->build_id, size) == 0;
}

/*
 * Takes @file if it is the mapped one: the same inode, or the same contents. Of a file that was
 * copied to the upper layer of an overlay, older kernels do not print the inode that it has.
 */
static int take_if_mapped(const struct address_space *s, const struct map *map,
			  struct elf_file *file, struct elf_file **out)
{
	if (file->ino != map->ino && !has_mapped_id(s, map, file)) {
		elf_file_release(file);
		return -ENOENT;
	}
	*out = file;
	return 0;
}

static int open_by_name(const struct address_space *s, const struct map *map, struct root_dir *root,
			struct elf_file **out)
{
	struct elf_file *file;
	int fd = root_dir_open_mapped(root, map->path);
	int rc = fd < 0 ? fd : elf_file_open_fd(&s->registry->files, fd,
						root_dir_name(root, map->path), root, &file);
	return rc != 0 ? rc : take_if_mapped(s, map, file, out);
}

/* Opens @link of the process's directory in /proc, for a file that has no name any more. */
static int open_by_link(const struct address_space *s, const struct map *map, struct root_dir *root,
			const char *link, struct elf_file **out)
{
	struct elf_file *file;
	_cleanup_free_ char *path = xasprintf("/proc/%d/%s", (int)s->processes.reader, link);
	int fd = root_dir_open(NULL, path);
	int rc = fd < 0 ? fd : elf_file_open_fd(&s->registry->files, fd,
						root_dir_name(root, map->path), root, &file);
	return rc != 0 ? rc : take_if_mapped(s, map, file, out);
}

/* A file without its name is still accessible under map_files, if permitted, and as exe. */
static int open_mapped_file(const struct address_space *s, const struct map *map,
			    struct root_dir *root, struct elf_file **out)
{
	char link[64];
	int rc = open_by_name(s, map, root, out);
	if (rc == 0)
		return 0;
	snprintf(link, sizeof(link), "map_files/%lx-%lx", (unsigned long)map->start,
		 (unsigned long)map->end);
	bool is_open = open_by_link(s, map, root, link, out) == 0 ||
		       open_by_link(s, map, root, "exe", out) == 0;
	return is_open ? 0 : rc;
}

/* It is opened once for all modules. */
struct root_dir *module_root(const struct address_space *s)
{
	struct elf_files *files = &s->registry->files;
	struct root_dir *root = root_dir_of(s->processes.reader, files->root);
	if (root && root != files->root) {
		root_dir_release(files->root);
		files->root = root_dir_hold(root);
	}
	return root;
}

struct module *module_open(const struct address_space *s, const struct map *map,
			   struct root_dir *root)
{
	struct module *m = xcalloc(1, sizeof(*m));
	m->users = 1;
	m->is_vdso = strcmp(map->path, "[vdso]") == 0;
	m->path = xstrdup(root_dir_name(root, map->path));
	m->start = map->start;
	m->end = map->end;
	m->dev = map->dev;
	m->ino = map->ino;
	int rc = m->is_vdso ? open_vdso(s, map, &m->file) :
			      open_mapped_file(s, map, root, &m->file);
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
