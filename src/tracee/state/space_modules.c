/* Finds modules by comparing /proc/PID/maps with the known list. */
#include "tracee/state/space_modules.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/root_dir.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/registry.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

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

static bool is_object_map(const struct map *map)
{
	return map->is_exec && (map->path[0] == '/' || strcmp(map->path, "[vdso]") == 0);
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
		if (!is_object_map(map)) {
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
