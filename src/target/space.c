/*
 * Address spaces: modules found by comparing /proc/PID/maps with the list that is
 * kept, traps in a hash table by address, memory through process_vm_readv (fast,
 * many bytes at once) and /proc/PID/mem (which may write to read-only text).
 */
#include "target/space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "target/guard.h"
#include "target/syscall_sites.h"
#include "target/requests.h"

static uint32_t last_space_id, last_module_id;

static int open_memory(pid_t pid)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/mem", (int)pid);
	return open(name, O_RDWR | O_CLOEXEC);
}

struct space *space_new(pid_t pid)
{
	struct space *s = xcalloc(1, sizeof(*s));
	s->id = ++last_space_id;
	s->users = 1;
	s->pid = s->reader = pid;
	s->mem_fd = open_memory(pid);
	s->maps_fd = maps_open(pid);
	s->is_own_image = true;
	return s;
}

static void close_files(struct space *s)
{
	if (s->mem_fd >= 0)
		close(s->mem_fd);
	if (s->maps_fd >= 0)
		close(s->maps_fd);
}

void space_reopen(struct space *s)
{
	int fd = open_memory(s->pid);
	if (fd < 0)
		return;
	close_files(s);
	s->mem_fd = fd;
	s->maps_fd = maps_open(s->pid);
}

struct space *space_fork(const struct space *parent, pid_t child)
{
	struct space *s = space_new(child);
	s->is_own_image = false;
	for (size_t i = 0; i < parent->modules.count; i++)
		*vec_add(&s->modules) = module_hold(parent->modules.data[i]);
	for (size_t i = 0; i < parent->code.count; i++) {
		struct map *m = vec_add(&s->code);
		*m = parent->code.data[i];
		m->path = xstrdup(m->path);
	}
	for (size_t i = 0; i < parent->traps.count; i++)
		*vec_add(&s->traps) = parent->traps.data[i];
	for (size_t i = 0; i < parent->areas.count; i++) {
		struct stub_area *a = vec_add(&s->areas);
		*a = parent->areas.data[i];
		if (a->saved)
			a->saved = xmemdup(a->saved, a->size);
	}
	s->shared = parent->shared;
	s->shared_size = parent->shared_size;
	s->mapped = parent->mapped;
	s->trap_bits = parent->trap_bits;
	if (parent->trap_index)
		s->trap_index = xmemdup(parent->trap_index, sizeof(uint32_t) << s->trap_bits);
	s->syscall_insn = parent->syscall_insn;
	s->program_break = parent->program_break;
	s->stack_start = parent->stack_start;
	s->stops_at_all = parent->stops_at_all;
	s->throw_through = parent->throw_through;
	s->throw_saved = parent->throw_saved;
	s->is_loading = parent->is_loading;
	s->is_ready = parent->is_ready;
	s->is_profiled = parent->is_profiled;
	s->probe_count = parent->probe_count;
	requests_fork(parent, s);
	return s;
}

static void clear_code(struct space *s)
{
	for (size_t i = 0; i < s->code.count; i++)
		free(s->code.data[i].path);
	s->code.count = 0;
}

void space_free(struct space *s)
{
	for (size_t i = 0; i < s->modules.count; i++)
		module_release(s->modules.data[i]);
	clear_code(s);
	requests_free(s);
	guard_space_gone(s);
	for (size_t i = 0; i < s->areas.count; i++)
		free(s->areas.data[i].saved);
	vec_deinit(&s->modules);
	vec_deinit(&s->code);
	vec_deinit(&s->traps);
	vec_deinit(&s->areas);
	free(s->trap_index);
	close_files(s);
	free(s);
}

ssize_t space_read_some(const struct space *s, taddr_t addr, void *buf, size_t size)
{
	struct iovec local = {buf, size}, remote = {(void *)(uintptr_t)addr, size};
	ssize_t n = process_vm_readv(s->reader, &local, 1, &remote, 1, 0);
	if (n > 0 || (n < 0 && errno == EFAULT))
		return n < 0 ? -EFAULT : n;
	if (s->mem_fd < 0)
		return -ESRCH;
	n = pread(s->mem_fd, buf, size, (off_t)addr);
	return n < 0 ? -errno : n == 0 ? -ESRCH : n;
}

int space_read(const struct space *s, taddr_t addr, void *buf, size_t size)
{
	size_t done = 0;
	while (done < size) {
		ssize_t n = space_read_some(s, addr + done, (uint8_t *)buf + done, size - done);
		if (n <= 0)
			return n < 0 ? (int)n : -EFAULT;
		done += (size_t)n;
	}
	return 0;
}

bool space_holds_above(const struct space *s, taddr_t sp, taddr_t at, uint64_t want)
{
	uint64_t word = 0;
	return at && sp <= at && space_read(s, at, &word, sizeof(word)) == 0 && word == want;
}

int space_read_text(const struct space *s, taddr_t addr, void *buf, size_t size)
{
	int rc = space_read(s, addr, buf, size);
	for (size_t i = 0; i < s->traps.count && rc == 0; i++) {
		const struct trap *t = &s->traps.data[i];
		if (t->kind == TRAP_SYSCALL && !t->is_removed && t->addr - addr < size)
			memcpy((uint8_t *)buf + (t->addr - addr), t->original, t->patch_size);
	}
	return rc;
}

int space_write(const struct space *s, taddr_t addr, const void *buf, size_t size)
{
	if (s->mem_fd < 0)
		return -EPERM;
	ssize_t n = pwrite(s->mem_fd, buf, size, (off_t)addr);
	if (n < 0)
		return -errno;
	return (size_t)n == size ? 0 : n == 0 ? -ESRCH : -EFAULT;
}

/* -- modules -- */

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
		syscall_sites_deinit(m->syscalls);
	free(m->syscalls);
	if (m->markers)
		vec_deinit(&m->markers->list);
	free(m->markers);
	free(m->path);
	free(m);
}

static int open_vdso(const struct space *s, const struct map *map, struct elf_file **out)
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
 * The file behind @map, in the target's own mount namespace. A deleted file is
 * still there under map_files, if we may look (and under exe, if it is that).
 */
static int open_mapped_file(const struct space *s, const struct map *map, struct elf_file **out)
{
	char name[64];
	_cleanup_free_ char *path = xasprintf("/proc/%d/root%s", (int)s->reader, map->path);
	int rc = -ENOENT;
	if (!map->is_deleted)
		rc = elf_file_open(path, map->path, out);
	if (rc != 0) {
		snprintf(name, sizeof(name), "/proc/%d/map_files/%lx-%lx", (int)s->reader,
			 (unsigned long)map->start, (unsigned long)map->end);
		rc = elf_file_open(name, map->path, out);
	}
	if (rc == 0 && (*out)->ino != map->ino) {
		/* replaced under the same name: that is not what is mapped */
		elf_file_release(*out);
		rc = -ENOENT;
	}
	if (rc != 0) {
		struct elf_file *file;
		snprintf(name, sizeof(name), "/proc/%d/exe", (int)s->reader);
		if (elf_file_open(name, map->path, &file) == 0) {
			if (file->ino == map->ino) {
				*out = file;
				return 0;
			}
			elf_file_release(file);
		}
	}
	return rc;
}

/* The load bias that @map (executable) implies, by the segment that it maps. */
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

/* Makes the module whose executable map is @map. It may lack a readable file. */
static struct module *new_module(const struct space *s, const struct map *map)
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

static bool is_object_map(const struct map *map)
{
	return map->is_exec && (map->path[0] == '/' || strcmp(map->path, "[vdso]") == 0);
}

/* The known module that maps the same file at the same place, or NULL. */
static struct module *known_module(const struct space *s, const struct map *map)
{
	struct module *m = space_find_module(s, map->start);
	if (!m || strcmp(m->path, map->path) != 0 || map->end > m->end)
		return NULL;
	if (m->file && !m->is_vdso && m->file->ino != map->ino)
		return NULL;
	return m;
}

static void remove_traps(struct space *s, const struct module *m)
{
	for (size_t i = 0; i < s->traps.count; i++) {
		struct trap *t = &s->traps.data[i];
		if (t->module == m->id && (t->kind == TRAP_ENTRY || t->kind == TRAP_SYSCALL)) {
			t->is_removed = true;
			if (t->semaphore)
				guard_forget_trap(s, t->semaphore);
			t->semaphore = 0;
		}
		if (t->is_removed)
			guard_forget_trap(s, t->addr);
	}
}

static bool is_executable(const struct module *m, ino_t exe)
{
	return m->file && !m->is_vdso && m->file->ino == exe;
}

/*
 * Modules that come together are numbered in load order, the executable first: the
 * kernel and the dynamic linker place each object below the one before. Reports
 * order call sites of equal size by these numbers, as Valgrind, which places
 * objects upwards, orders them by address.
 */
static void number_modules(const struct space *s, struct module **fresh, size_t count)
{
	char name[64];
	struct stat st = {0};
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)s->reader);
	if (stat(name, &st) != 0)
		st.st_ino = 0;
	for (size_t i = count; i-- > 0;) {
		if (is_executable(fresh[i], st.st_ino))
			fresh[i]->id = ++last_module_id;
	}
	for (size_t i = count; i-- > 0;) {
		if (!fresh[i]->id)
			fresh[i]->id = ++last_module_id;
	}
}

/* What was no code is none still, where the same is mapped as code. */
static void forget_misses(struct space *s, const struct maps *maps)
{
	uint64_t hash = 0;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (m->is_exec)
			hash = hash_u64(hash_u64(hash_u64(hash ^ m->start) ^ m->end) ^ m->ino);
	}
	if (hash != s->code_hash)
		memset(s->miss, 0, sizeof(s->miss));
	s->code_hash = hash;
}

int space_update_modules(struct space *s, space_module_fn *loaded, space_module_fn *unloaded,
			 void *ctx)
{
	struct maps maps;
	int rc = maps_read(s->reader, &maps);
	if (rc != 0)
		return rc;
	VEC(struct module *) now = {0}, fresh = {0};
	clear_code(s);
	forget_misses(s, &maps);
	for (size_t i = 0; i < maps.list.count; i++) {
		struct map *map = &maps.list.data[i];
		if (!is_object_map(map)) {
			if (map->is_exec) {
				*vec_add(&s->code) = *map;
				map->path = NULL;
			}
			continue;
		}
		struct module *m = known_module(s, map),
			      *last = now.count ? now.data[now.count - 1] : NULL;
		if (m && m == last)
			continue;
		if (!m && last && last->end == map->start && strcmp(last->path, map->path) == 0) {
			last->end =
				map->end; /* one segment in two maps: its protection was changed */
			continue;
		}
		if (!m) {
			m = new_module(s, map);
			*vec_add(&fresh) = m;
		}
		*vec_add(&now) = m;
	}
	maps_deinit(&maps);
	number_modules(s, fresh.data, fresh.count);
	for (size_t i = 0; i < s->modules.count; i++) {
		struct module *m = s->modules.data[i];
		bool still = false;
		for (size_t k = 0; k < now.count && !still; k++)
			still = now.data[k] == m;
		if (still)
			continue;
		remove_traps(s, m);
		if (unloaded)
			unloaded(ctx, s, m);
		module_release(m);
	}
	vec_deinit(&s->modules);
	s->modules.data = now.data;
	s->modules.count = now.count;
	s->modules.capacity = now.capacity;
	for (size_t i = 0; i < fresh.count && loaded; i++)
		loaded(ctx, s, fresh.data[i]);
	vec_deinit(&fresh);
	return 0;
}

struct module *space_find_module(const struct space *s, taddr_t pc)
{
	size_t i = vec_search(&s->modules, m, (*m)->end <= pc);
	return i < s->modules.count && s->modules.data[i]->start <= pc ? s->modules.data[i] : NULL;
}

bool space_in_other_module(const struct space *s, const struct module *m, taddr_t addr)
{
	const struct module *there = space_find_module(s, addr);
	return there && there != m;
}

bool space_is_known_miss(struct space *s, taddr_t pc)
{
	for (size_t i = 0; i < s->code.count; i++) {
		if (pc >= s->code.data[i].start && pc < s->code.data[i].end)
			return true;
	}
	taddr_t page = pc / PAGE_SIZE_MIN + 1;
	taddr_t *slot = &s->miss[page % ARRAY_SIZE(s->miss)];
	if (*slot == page)
		return true;
	*slot = page;
	return false;
}

bool space_is_own(const struct space *s, taddr_t addr)
{
	for (size_t i = 0; i < s->areas.count; i++) {
		const struct stub_area *a = &s->areas.data[i];
		if (!a->is_slack && addr - a->start < a->size)
			return true;
	}
	return addr - s->shared < s->shared_size;
}

bool space_may_be_code(const struct space *s, taddr_t pc)
{
	return s->maps_fd < 0 || maps_query(s->maps_fd, pc) != 0;
}

/* -- traps -- */

static uint32_t trap_slot(const struct space *s, taddr_t addr)
{
	uint32_t mask = (1u << s->trap_bits) - 1, i = (uint32_t)hash_u64(addr) & mask;
	while (s->trap_index[i] && s->traps.data[s->trap_index[i] - 1].addr != addr)
		i = (i + 1) & mask;
	return i;
}

struct trap *space_trap_find(const struct space *s, taddr_t addr)
{
	if (!s->trap_index)
		return NULL;
	uint32_t i = s->trap_index[trap_slot(s, addr)];
	struct trap *t = i ? &s->traps.data[i - 1] : NULL;
	return t && !t->is_removed ? t : NULL;
}

static void grow_trap_index(struct space *s)
{
	free(s->trap_index);
	s->trap_bits = s->trap_bits ? s->trap_bits + 1 : 8;
	s->trap_index = xcalloc((size_t)1 << s->trap_bits, sizeof(uint32_t));
	for (uint32_t i = 0; i < s->traps.count; i++)
		s->trap_index[trap_slot(s, s->traps.data[i].addr)] = i + 1;
}

void space_trap_add(struct space *s, const struct trap *trap)
{
	if (!s->trap_index || s->traps.count * 2 >= 1u << s->trap_bits)
		grow_trap_index(s);
	uint32_t slot = trap_slot(s, trap->addr);
	if (s->trap_index[slot]) {
		s->traps.data[s->trap_index[slot] - 1] =
			*trap; /* an address that was unloaded and came back */
		return;
	}
	*vec_add(&s->traps) = *trap;
	s->trap_index[slot] = (uint32_t)s->traps.count;
}

int space_trap_put(struct space *s, const struct arch *arch, const struct trap *trap)
{
	struct trap t = *trap;
	t.patch_size = arch->trap_size;
	int rc = space_read(s, t.addr, t.original, arch->trap_size);
	if (rc == 0) {
		guard_note_trap(s, arch, &t);
		rc = space_write(s, t.addr, arch->trap, arch->trap_size);
	}
	if (rc == 0)
		space_trap_add(s, &t);
	return rc;
}

int space_trap_take(struct space *s, const struct arch *arch, struct trap *trap)
{
	if (trap->is_removed)
		return 0;
	int rc = space_write(s, trap->addr, trap->original, trap->patch_size);
	if (rc == 0) {
		trap->is_removed = true;
		guard_forget_trap(s, trap->addr);
	}
	return rc;
}

static void count_probes(const struct space *s, bool markers, uint32_t *jumps_out,
			 uint32_t *breakpoints_out)
{
	uint32_t jumps = 0, breakpoints = 0;
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind != TRAP_ENTRY || trap->is_removed ||
		    probe_is_marker(trap->probe) != markers ||
		    (!markers && trap->probe->function == FUNCTION_NONE))
			continue;
		jumps += trap->pad != 0;
		breakpoints += trap->pad == 0;
	}
	*jumps_out = jumps;
	*breakpoints_out = breakpoints;
}

void space_count_probes(const struct space *s, uint32_t *jumps_out, uint32_t *breakpoints_out)
{
	count_probes(s, false, jumps_out, breakpoints_out);
}

void space_count_markers(const struct space *s, uint32_t *jumps_out, uint32_t *breakpoints_out)
{
	count_probes(s, true, jumps_out, breakpoints_out);
}
