/*
 * Verifies a journal found in the program's memory. The program may have overwritten or forged it,
 * or unmapped what it describes; so anything that maps, memory and mapped files do not confirm is
 * left alone:
 *
 *	page       executable memory of no file, with the handler's code; else it is rejected
 *	area       executable memory of no file; memory of pads: shared, of a memfd
 *	trap       in an area; or in the text of an object, where there is a breakpoint or a
 *	           jump into an area and the file has the bytes to be restored; or a semaphore, a
 *	           small count in writable memory
 *	injection  in an object's text, with zeros or a system call there
 *
 * A breakpoint whose original bytes are not confirmed still needs the handler: then everything
 * stays.
 */
#include "tracee/guard/journal_check.h"

#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "tracee/guard/trap_handler.h"
#include "tracee/os/maps.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/trap.h"

#define MAX_SHARED (1ull << 36)
#define MAX_USERS 1024 /* of a semaphore */

const char *journal_find_flaw(const struct journal *r, taddr_t page)
{
	if (r->page != page)
		return "it is another page's";
	if (r->trap_count > JOURNAL_TRAPS || r->area_count > JOURNAL_AREAS)
		return "it has too many entries";
	if (r->has_handler > 1 || r->masked_thread < 0 || r->shared_size > MAX_SHARED)
		return "a number in it is impossible";
	for (uint32_t i = 0; i < r->area_count; i++) {
		const struct journal_area *a = &r->area[i];
		if (a->is_pads > 1 || a->is_slack > 1 || a->is_memory > 1 ||
		    a->start + a->size < a->start)
			return "an area in it is impossible";
	}
	for (uint32_t i = 0; i < r->trap_count; i++) {
		if (r->trap[i].patch_size > sizeof(r->trap[i].original) ||
		    r->trap[i].kind > TRAP_PAD_FULL)
			return "a breakpoint in it is impossible";
	}
	return NULL;
}

struct check {
	struct journal *record;
	const struct address_space *space;
	const struct arch *arch;
	struct maps maps;
};

typedef bool map_fn(const struct map *m);

static bool is_own_code(const struct map *m)
{
	return m->is_exec && !m->is_write && !m->is_shared && !m->path[0];
}

static bool is_memfd(const struct map *m)
{
	return m->is_shared && strncmp(m->path, "/memfd:", 7) == 0;
}

static bool is_text(const struct map *m)
{
	return m->is_exec && (m->path[0] == '/' || strcmp(m->path, "[vdso]") == 0);
}

static bool is_code(const struct map *m)
{
	return m->is_exec;
}

static bool is_data(const struct map *m)
{
	return m->is_write && !m->is_shared;
}

/* Whether all of [@start, @start + @size) is mapped, by maps that @fn accepts. */
static bool is_within(const struct maps *maps, taddr_t start, uint64_t size, map_fn *fn)
{
	taddr_t at = start;
	while (at - start < size) {
		const struct map *m = maps_find(maps, at);
		if (!m || !fn(m))
			return false;
		at = m->end;
	}
	return size > 0;
}

static bool is_in_areas(const struct journal *r, taddr_t at, uint64_t size)
{
	for (uint32_t i = 0; i < r->area_count; i++) {
		const struct journal_area *a = &r->area[i];
		if (at - a->start < a->size && size <= a->size - (at - a->start))
			return true;
	}
	return false;
}

static bool is_area(const struct check *c, const struct journal_area *a)
{
	if (a->size == 0)
		return true;
	return is_within(&c->maps, a->start, a->size,
			 a->is_slack ? is_text : a->is_memory ? is_memfd : is_own_code);
}

/* Whether the file of the object at @at contains the @size bytes at @want there. */
static bool is_in_file(const struct address_space *s, taddr_t at, const uint8_t *want, size_t size)
{
	const struct module *m = space_find_module(s, at);
	const struct elf_segment *segment = NULL;
	if (m && m->file)
		segment = elf_file_segment(m->file, at - m->bias);
	if (!segment)
		return false;
	uint64_t offset = at - m->bias - segment->vaddr;
	if (offset >= segment->filesz || size > segment->filesz - offset)
		return false;
	_cleanup_free_ uint8_t *got = elf_file_read(m->file, segment->offset + offset, size);
	return got && memcmp(got, want, size) == 0;
}

static bool is_semaphore(const struct check *c, const struct journal_trap *g)
{
	uint16_t now, was;
	memcpy(&was, g->original, sizeof(was));
	return g->patch_size == sizeof(was) && is_within(&c->maps, g->addr, sizeof(was), is_data) &&
	       space_read(c->space, g->addr, &now, sizeof(now)) == 0 && now - was >= 0 &&
	       now - was <= MAX_USERS;
}

enum verdict { OURS, GONE, DOUBTFUL };

/* For a trap in the text of an object. */
static enum verdict judge_text(const struct check *c, const struct journal_trap *g)
{
	uint8_t code[sizeof(g->original)];
	taddr_t to;
	if (!is_within(&c->maps, g->addr, g->patch_size, is_text) ||
	    space_read(c->space, g->addr, code, g->patch_size) != 0 ||
	    !arch_is_patch(code, g->patch_size, g->addr, &to) ||
	    (to != 0 && !is_in_areas(c->record, to, 1)) ||
	    memcmp(code, g->original, g->patch_size) == 0)
		return GONE;
	return is_in_file(c->space, g->addr, g->original, g->patch_size) ? OURS : DOUBTFUL;
}

static enum verdict judge_trap(const struct check *c, const struct journal_trap *g)
{
	if (g->patch_size == 0)
		return GONE;
	if (g->resume == g->addr)
		return is_semaphore(c, g) ? OURS : GONE;
	enum verdict v = OURS;
	if (!is_in_areas(c->record, g->addr, g->patch_size))
		v = judge_text(c, g);
	if (v == OURS && g->resume && !is_within(&c->maps, g->resume, 1, is_code))
		return DOUBTFUL;
	return v;
}

static bool is_injection(const struct check *c, taddr_t at)
{
	static const uint8_t zero[INJECTION_SIZE];
	uint8_t code[INJECTION_SIZE];
	return is_within(&c->maps, at, INJECTION_SIZE, is_text) &&
	       space_read(c->space, at, code, sizeof(code)) == 0 &&
	       (memcmp(code, zero, sizeof(zero)) == 0 ||
		memcmp(code, c->arch->syscall_insn, c->arch->syscall_insn_size) == 0);
}

static void drop_areas(struct check *c)
{
	struct journal *r = c->record;
	for (uint32_t i = 0; i < r->area_count; i++) {
		if (!is_area(c, &r->area[i]))
			r->area[i].size = 0;
	}
	if (r->shared && !is_within(&c->maps, r->shared, r->shared_size, is_memfd))
		r->shared = 0;
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++) {
		if (r->injection[i] && !is_injection(c, r->injection[i]))
			r->injection[i] = 0;
	}
}

static const char *prove(struct check *c)
{
	struct journal *r = c->record;
	if (!is_within(&c->maps, r->page, HANDLER_SIZE, is_own_code) ||
	    !trap_handler_is_page(c->space, r->page))
		return "there is no handler in its page";
	drop_areas(c);
	for (uint32_t i = 0; i < r->trap_count; i++) {
		enum verdict v = judge_trap(c, &r->trap[i]);
		if (v == DOUBTFUL)
			return "what a breakpoint replaced is unknown";
		if (v == GONE)
			r->trap[i].patch_size = 0;
	}
	return NULL;
}

const char *journal_verify(struct journal *r, const struct address_space *s,
			       const struct arch *arch)
{
	struct check c = {.record = r, .space = s, .arch = arch};
	if (maps_read(s->processes.reader, &c.maps) != 0)
		return "the program's maps cannot be read";
	const char *lie = prove(&c);
	maps_deinit(&c.maps);
	return lie;
}
