#include "tracee/inject/stub_area.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define AREA_SIZE 4096u
#define PADS_AREA_SIZE 65536u
#define AREA_ALIGN 64u

static const char area_magic[8] = "ptmem\02\0";

struct area_header {
	char magic[8];
	uint32_t used;
	uint32_t is_left; /* no breakpoint leads here any more, but a thread's stack may */
};

static bool reaches(taddr_t start, taddr_t addr)
{
	return (addr > start ? addr - start : start - addr) < arch_native->reach;
}

static void write_header(const struct address_space *s, const struct stub_area *a, bool is_left)
{
	struct area_header h = {.used = a->used, .is_left = is_left};
	memcpy(h.magic, area_magic, sizeof(h.magic));
	if (a->size && !a->is_slack && !a->is_trap_handler && !a->is_memory)
		space_write(s, a->start, &h, sizeof(h));
}

/* As near as there is room, since functions around @addr should reach it, too. */
static int find_gap(const struct maps *maps, taddr_t addr, uint32_t size, taddr_t *at_out)
{
	const uint64_t most = arch_native->reach;
	int rc = -ENOMEM;
	for (uint64_t reach = most / 2; rc != 0 && reach <= most; reach += most / 8)
		rc = maps_find_gap(maps, addr, reach - size, size, at_out);
	return rc;
}

/* Where the pads of a function with a stub go, if that is still free; 0: it has to be searched. */
static taddr_t planned_place(const struct address_space *s, taddr_t addr)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		const struct stub_area *a = &s->own.areas.data[i];
		if (a->room && reaches(a->room, addr) &&
		    maps_query_free(s->files.maps, a->room, PADS_AREA_SIZE) == 1)
			return a->room;
	}
	return 0;
}

/* *room_out: a place for pads near one for stubs, after an unmapped page; 0 = there is none. */
static int find_place(struct address_space *s, taddr_t addr, bool is_pads, taddr_t *at_out,
		      taddr_t *room_out)
{
	const uint32_t size = is_pads ? PADS_AREA_SIZE : AREA_SIZE, room = 2 * AREA_SIZE;
	struct maps maps;
	*room_out = 0;
	*at_out = is_pads ? planned_place(s, addr) : 0;
	if (*at_out)
		return 0;
	int rc = maps_read(s->processes.reader, &maps);
	if (rc != 0)
		return rc;
	inject_plan_mmap(s, &maps);
	if (!is_pads && find_gap(&maps, addr, room + PADS_AREA_SIZE, at_out) == 0)
		*room_out = *at_out + room;
	else
		rc = find_gap(&maps, addr, size, at_out);
	maps_deinit(&maps);
	return rc;
}

static int map_area(const struct stub_place *p, taddr_t addr, bool is_pads)
{
	struct address_space *s = p->space;
	uint32_t size = is_pads ? PADS_AREA_SIZE : AREA_SIZE;
	if (!p->thread)
		return -ESRCH;
	if (!seccomp_allows_injection(p->target, p->thread->tid, NULL))
		return -EPERM;
	taddr_t at = 0, room;
	int rc = find_place(s, addr, is_pads, &at, &room);
	if (rc != 0)
		return rc;
	int64_t result = 0;
	const uint64_t args[6] = {at,
				  size,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0};
	rc = inject_mmap(p->target, p->thread, args, &result);
	if (rc != 0)
		return rc;
	if (result != (int64_t)at)
		return result < 0 ? (int)result : -ENOMEM;
	struct stub_area *a = own_memory_add_code(&s->own, at, size);
	a->used = sizeof(struct area_header);
	a->is_pads = is_pads;
	a->room = room;
	return 0;
}

/* The bytes after @m's text in its last page are unused. */
static int slack_area(struct address_space *s, const struct module *m)
{
	for (size_t i = 0; m->file && i < m->file->segment_count; i++) {
		const struct elf_segment *seg = &m->file->segment[i];
		taddr_t end = m->bias + seg->vaddr + seg->filesz,
			start = ROUND_UP(end, (taddr_t)STUB_ALIGN);
		if (!seg->is_exec || start < m->start || start >= m->end ||
		    m->end - start < 2 * STUB_MAX)
			continue;
		struct stub_area a = {.start = start,
				      .size = (uint32_t)(m->end - start),
				      .is_slack = true};
		a.saved = xmalloc(a.size);
		int rc = space_read(s, a.start, a.saved, a.size);
		if (rc != 0) {
			free(a.saved);
			return rc;
		}
		*vec_add(&s->own.areas) = a;
		return 0;
	}
	return -ENOSPC;
}

static struct stub_area *find_area(struct address_space *s, taddr_t addr, uint32_t size,
				   bool is_pads)
{
	for (size_t i = 0; i < s->own.areas.count; i++) {
		struct stub_area *a = &s->own.areas.data[i];
		if (a->is_pads == is_pads && ROUND_UP(a->used, AREA_ALIGN) + size <= a->size &&
		    reaches(a->start, addr))
			return a;
	}
	return NULL;
}

int stub_area_get(const struct stub_place *p, taddr_t addr, struct stub_area **area_out)
{
	struct stub_area *a = find_area(p->space, addr, STUB_MAX, false);
	int rc = a ? 0 : map_area(p, addr, false);
	if (rc == -EPERM || rc == -ENOMEM || rc == -EACCES) {
		log_verbose("%s: no page can be mapped near it (%s): stubs go after its text",
			    p->module->path, strerror(-rc));
		rc = slack_area(p->space, p->module);
	}
	if (rc == 0 && !a)
		a = find_area(p->space, addr, STUB_MAX, false);
	if (!a)
		return rc != 0 ? rc : -ENOSPC;
	*area_out = a;
	return 0;
}

void stub_area_use(struct stub_area *a, uint32_t size)
{
	a->used = MIN(ROUND_UP(a->used + size, STUB_ALIGN), a->size);
}

int stub_area_take(const struct stub_place *p, taddr_t addr, uint32_t size, taddr_t *at_out)
{
	struct stub_area *a;
	int rc = stub_area_get(p, addr, &a);
	if (rc != 0)
		return rc;
	*at_out = a->start + a->used;
	stub_area_use(a, size);
	write_header(p->space, a, false);
	return 0;
}

int stub_area_take_pad(const struct stub_place *p, taddr_t addr, uint32_t size, taddr_t *at_out)
{
	struct stub_area *a = find_area(p->space, addr, size, true);
	int rc = a ? 0 : map_area(p, addr, true);
	if (rc == 0 && !a)
		a = find_area(p->space, addr, size, true);
	if (!a)
		return rc != 0 ? rc : -ENOSPC;
	a->used = ROUND_UP(a->used, AREA_ALIGN);
	*at_out = a->start + a->used;
	a->used += size;
	return 0;
}

void stub_area_write_headers(const struct address_space *s)
{
	for (size_t i = 0; i < s->own.areas.count; i++)
		write_header(s, &s->own.areas.data[i], false);
}

void stub_area_leave(const struct address_space *s, const struct stub_area *a)
{
	if (!a->is_pads)
		write_header(s, a, true);
}

static void adopt(struct address_space *s, taddr_t start, uint32_t used)
{
	uint8_t page[AREA_SIZE];
	if (space_read(s, start, page, sizeof(page)) != 0)
		return;
	struct stub_area *a = own_memory_add_code(&s->own, start, AREA_SIZE);
	a->used = used;
	own_memory_note(a, start, page, sizeof(page));
	write_header(s, a, false);
}

void stub_area_adopt(struct address_space *s)
{
	for (size_t i = 0; i < s->modules.code.count; i++) {
		const struct map *m = &s->modules.code.data[i];
		struct area_header h;
		bool is_known = false;
		for (size_t k = 0; k < s->own.areas.count; k++)
			is_known |= s->own.areas.data[k].start == m->start;
		if (is_known || m->end - m->start != AREA_SIZE ||
		    space_read(s, m->start, &h, sizeof(h)) != 0 ||
		    memcmp(h.magic, area_magic, sizeof(h.magic)) != 0 || h.used > AREA_SIZE ||
		    !h.is_left)
			continue;
		adopt(s, m->start, h.used);
	}
}

/*
 * Only what still holds ptmem's code counts as ptmem's, whatever its rights: the program may have
 * mapped its own memory at the same address, which is never written, unmapped or executed.
 */

static bool is_over(const struct map *m, const struct stub_area *a)
{
	return m->start < a->start + a->size && m->end > a->start;
}

/* Whether there is any code between @start and @end: nothing else proves whose memory it is. */
static bool has_code(const struct stub_area *a, taddr_t start, taddr_t end)
{
	for (taddr_t at = start; at < end; at++) {
		if (a->contents[at - a->start])
			return true;
	}
	return false;
}

static bool is_ours(const struct address_space *s, const struct stub_area *a, const struct map *m)
{
	taddr_t start = MAX(m->start, a->start), end = MIN(m->end, a->start + a->size);
	return !m->is_shared && !*m->path && has_code(a, start, end) &&
	       space_holds_code(s, a, start, end - start) == 1;
}

enum lost_state lost_code_state(const struct address_space *s, const struct maps *maps,
				const struct stub_area *a)
{
	uint64_t left = a->size;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (!is_over(m, a))
			continue;
		if (!is_ours(s, a, m))
			return LOST_REPLACED;
		if (m->is_read && m->is_exec)
			left -= MIN(m->end, a->start + a->size) - MAX(m->start, a->start);
	}
	return left == 0 ? LOST_NOT : LOST_GONE;
}

/* What is left of @a would be in the way. */
static int unmap_rest(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a)
{
	const uint64_t args[6] = {a->start, a->size};
	bool is_rest = false;
	int64_t result = 0;
	for (size_t i = 0; i < maps->list.count; i++)
		is_rest |= is_over(&maps->list.data[i], a);
	int rc = is_rest ? inject_syscall(t, th, SYS_munmap, args, &result) : 0;
	return rc != 0 ? rc : (int)result;
}

int lost_code_restore(struct target *t, struct thread *th, const struct maps *maps,
		      const struct stub_area *a)
{
	const uint64_t args[6] = {a->start,
				  a->size,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
				  (uint64_t)-1,
				  0};
	int64_t result = -EIO;
	int rc = unmap_rest(t, th, maps, a);
	if (rc == 0)
		rc = inject_syscall(t, th, SYS_mmap, args, &result);
	if (rc == 0 && result != (int64_t)a->start)
		rc = result < 0 ? (int)result : -EEXIST;
	return rc != 0 ? rc : space_rewrite_code(th->process->space, a);
}

bool lost_code_may_be_ours(const struct address_space *s, taddr_t start)
{
	struct maps maps;
	if (maps_read(s->processes.reader, &maps) != 0)
		return false;
	const struct map *m = maps_find(&maps, start);
	bool is_code = m && !m->is_shared && m->is_exec && !m->is_write && !*m->path;
	bool is_memory = m && m->is_shared && m->is_write && map_has_no_file(m);
	maps_deinit(&maps);
	return is_code || is_memory;
}
