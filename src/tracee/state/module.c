/* The vdso of a process, an ELF file that the kernel maps. Internal to src/tracee. */
#include "tracee/state/module.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/os/pagemap.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

struct address_space;
struct map;

/*
 * All processes have the same vdso, unless one was restored from another kernel's checkpoint, or
 * changed its own. To read a page of it makes the page resident in that process. So ptmem copies
 * its own, and compares that with the pages that the process has used.
 */

/* Copies ptmem's own vdso; false if it does not have @size bytes. */
static bool copy_own(uint8_t *image, size_t size)
{
	taddr_t start = getauxval(AT_SYSINFO_EHDR);
	struct maps maps = {0};
	const struct map *m = NULL;

	if (start && maps_read(getpid(), &maps) == 0)
		m = maps_find(&maps, start);
	bool fits = m && m->start == start && m->end - start == size;

	if (fits)
		memcpy(image, (const void *)(uintptr_t)start, size);
	maps_deinit(&maps);
	return fits;
}

struct comparison {
	const struct address_space *space;
	const uint8_t *image;
	taddr_t start; /* of the vdso */
	bool is_same;
};

static void compare(void *ctx, taddr_t start, taddr_t end)
{
	struct comparison *c = ctx;
	uint8_t page[PAGE_SIZE_MIN];

	for (; start < end && c->is_same; start += sizeof(page))
		c->is_same = space_read(c->space, start, page, sizeof(page)) == 0 &&
			     memcmp(page, c->image + (start - c->start), sizeof(page)) == 0;
}

/*
 * Copies the vdso of @s, mapped at @map, to @image, which has room for all of @map. Pages that the
 * process has not used yet do not become resident where that can be avoided. -errno if it cannot be
 * read.
 */
static int vdso_read(const struct address_space *s, const struct map *map, uint8_t *image)
{
	size_t size = map->end - map->start;
	struct comparison c = {
		.space = s, .image = image, .start = map->start, .is_same = copy_own(image, size)};
	struct present present;

	if (c.is_same) {
		present_open(s->processes.reader, true, &present);
		present_find(&present, map->start, map->end, compare, &c);
		present_close(&present);
	}
	return c.is_same ? 0 : space_read(s, map->start, image, size);
}

/* The ELF file of a module, and its load bias. */

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

/*
 * The root directory of @s, for module_open; NULL = our own. The caller releases it.
 * It is opened once for all modules.
 */
static struct root_dir *module_root(const struct address_space *s)
{
	struct elf_files *files = &s->registry->files;
	struct root_dir *root = root_dir_of(s->processes.reader, files->root);
	if (root && root != files->root) {
		root_dir_release(files->root);
		files->root = root_dir_hold(root);
	}
	return root;
}

/* Creates the module whose executable map in @s is @map. It may lack a readable file. */
static struct module *module_open(const struct address_space *s, const struct map *map,
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

/* Finds modules by comparing /proc/PID/maps with the known list. */

static void clear_code(struct module_list *list)
{
	for (size_t i = 0; i < list->code.count; i++)
		free(list->code.data[i].path);
	list->code.count = 0;
}

void module_list_copy(struct module_list *to, const struct module_list *from)
{
	for (size_t i = 0; i < from->count; i++)
		*vec_add(to) = module_hold(from->data[i]);
	for (size_t i = 0; i < from->code.count; i++) {
		struct map *m = vec_add(&to->code);
		*m = from->code.data[i];
		m->path = xstrdup(m->path);
	}
}

void module_list_clear(struct module_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		module_release(list->data[i]);
	list->count = 0;
	for (size_t i = 0; i < list->earlier.count; i++)
		module_release(list->earlier.data[i]);
	list->earlier.count = 0;
	clear_code(list);
	memset(list->miss, 0, sizeof(list->miss));
	list->code_hash = 0;
}

void module_list_deinit(struct module_list *list)
{
	module_list_clear(list);
	vec_deinit(&list->code);
	vec_deinit(&list->earlier);
	vec_deinit(list);
}

void space_forget_misses(struct address_space *s)
{
	memset(s->modules.miss, 0, sizeof(s->modules.miss));
}

/* Not by its name, which changes if the file is renamed or the process moves its root directory. */
static bool maps_same_file(const struct module *m, const struct map *map)
{
	return m->dev == map->dev && m->ino == map->ino;
}

/* The known module that maps the same file at the same address, or NULL. */
static struct module *known_module(const struct address_space *s, const struct map *map)
{
	struct module *m = space_find_module(s, map->start);
	return m && maps_same_file(m, map) && map->end <= m->end ? m : NULL;
}

/* Without a file there are no names that could differ. */
static bool is_same_object(const struct module *a, const struct module *b)
{
	return a->file == b->file && a->dev == b->dev && a->ino == b->ino && a->start == b->start &&
	       a->end == b->end && a->bias == b->bias && strcmp(a->path, b->path) == 0;
}

/* The id that @m had before it was unmapped; 0 = it was not there. */
static uint32_t earlier_id(const struct module_list *list, const struct module *m)
{
	for (size_t i = list->earlier.count; i-- > 0;) {
		if (is_same_object(list->earlier.data[i], m))
			return list->earlier.data[i]->id;
	}
	return 0;
}

static void keep_earlier(struct module_list *list, struct module *m)
{
	if (!earlier_id(list, m))
		*vec_add(&list->earlier) = module_hold(m);
}

static bool is_executable(const struct module *m, ino_t exe)
{
	return m->file && !m->is_vdso && m->file->ino == exe;
}

/*
 * Modules found together are numbered in load order, the executable first: the kernel and the
 * dynamic linker place each object below the previous one. Reports order call sites of equal size
 * by these numbers; Valgrind places objects upwards and orders by address, with the same result.
 */
static void number_modules(const struct address_space *s, struct module **fresh, size_t count)
{
	char name[64];
	struct stat st = {0};
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)s->processes.reader);
	if (stat(name, &st) != 0)
		st.st_ino = 0;
	for (size_t i = 0; i < count; i++)
		fresh[i]->id = earlier_id(&s->modules, fresh[i]);
	for (size_t i = count; i-- > 0;) {
		if (!fresh[i]->id && is_executable(fresh[i], st.st_ino))
			fresh[i]->id = ++s->registry->last_module_id;
	}
	for (size_t i = count; i-- > 0;) {
		if (!fresh[i]->id)
			fresh[i]->id = ++s->registry->last_module_id;
	}
}

/* Code that belonged to no module still belongs to none, if the same map is executable. */
static void check_misses(struct address_space *s, const struct maps *maps)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (m->is_exec)
			hash = hash_u64(hash_u64(hash_u64(hash ^ m->start) ^ m->end) ^ m->ino);
	}
	if (hash != s->modules.code_hash)
		space_forget_misses(s);
	s->modules.code_hash = hash;
}

int space_update_modules(struct address_space *s, space_module_fn *loaded,
			 space_module_fn *unloaded, void *ctx)
{
	struct maps maps;
	int rc = maps_read(s->processes.reader, &maps);
	if (rc != 0)
		return rc;
	struct root_dir *root = NULL;
	VEC(struct module *) now = {0}, fresh = {0};
	clear_code(&s->modules);
	check_misses(s, &maps);
	for (size_t i = 0; i < maps.list.count; i++) {
		struct map *map = &maps.list.data[i];
		if (!map_is_text(map)) {
			if (map->is_exec) {
				*vec_add(&s->modules.code) = *map;
				map->path = NULL;
			}
			continue;
		}
		struct module *m = known_module(s, map),
			      *last = now.count ? now.data[now.count - 1] : NULL;
		if (m && m == last)
			continue;
		if (!m && last && last->end == map->start && maps_same_file(last, map)) {
			last->end =
				map->end; /* one segment in two maps: its protection was changed */
			continue;
		}
		if (!m) {
			if (fresh.count == 0)
				root = module_root(s);
			m = module_open(s, map, root);
			*vec_add(&fresh) = m;
		}
		*vec_add(&now) = m;
	}
	maps_deinit(&maps);
	root_dir_release(root);
	number_modules(s, fresh.data, fresh.count);
	for (size_t i = 0; i < s->modules.count; i++) {
		struct module *m = s->modules.data[i];
		bool still = false;
		for (size_t k = 0; k < now.count && !still; k++)
			still = now.data[k] == m;
		if (still)
			continue;
		space_traps_of_module_gone(s, m);
		if (unloaded)
			unloaded(ctx, s, m);
		keep_earlier(&s->modules, m);
		module_release(m);
	}
	free(s->modules.data);
	s->modules.data = now.data;
	s->modules.count = now.count;
	s->modules.capacity = now.capacity;
	for (size_t i = 0; i < fresh.count && loaded; i++)
		loaded(ctx, s, fresh.data[i]);
	vec_deinit(&fresh);
	return 0;
}

struct module *space_find_module(const struct address_space *s, taddr_t pc)
{
	size_t i = vec_search(&s->modules, m, (*m)->end <= pc);
	return i < s->modules.count && s->modules.data[i]->start <= pc ? s->modules.data[i] : NULL;
}

bool space_in_other_module(const struct address_space *s, const struct module *m, taddr_t addr)
{
	const struct module *there = space_find_module(s, addr);
	return there && there != m;
}

bool space_is_known_miss(struct address_space *s, taddr_t pc)
{
	for (size_t i = 0; i < s->modules.code.count; i++) {
		if (pc >= s->modules.code.data[i].start && pc < s->modules.code.data[i].end)
			return true;
	}
	taddr_t page = pc / PAGE_SIZE_MIN + 1;
	taddr_t *slot = &s->modules.miss[page % ARRAY_SIZE(s->modules.miss)];
	if (*slot == page)
		return true;
	*slot = page;
	return false;
}

bool space_may_be_code(const struct address_space *s, taddr_t pc)
{
	return s->files.maps < 0 || maps_query(s->files.maps, pc) != 0;
}
