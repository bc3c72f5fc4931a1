/*
 * What ptmem changed in each space, for the guardian: in memory that it shares, and copied into the
 * page in the target. guard.h has the picture.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "target/guard.h"

/* Keeps the compiler from moving a record's stores across each other; a dying process's own are seen in order. */
#define ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

const char guard_copy_magic[8] = "ptmem\02\0";

struct guard_record *guard_records_new(void)
{
	void *p = mmap(NULL, sizeof(struct guard_record) * GUARD_SPACES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void guard_records_free(struct guard_record *records)
{
	munmap(records, sizeof(*records) * GUARD_SPACES);
}

static struct guard_record *free_record(struct target *t)
{
	for (size_t i = 0; t->guard.record && i < GUARD_SPACES; i++) {
		if (t->guard.record[i].pid == 0)
			return &t->guard.record[i];
	}
	return NULL;
}

/* Writes what @part of @s's record holds into the copy in its page, if it has one. */
static void copy_part(const struct space *s, const void *part, size_t size)
{
	const struct guard_record *r = s->guard;
	size_t offset = (size_t)((const char *)part - (const char *)r);
	if (r->page)
		space_write(s, r->page + GUARD_COPY + sizeof(struct guard_copy) + offset, part, size);
}

/* All of it but the unused ends of its tables, for a page that has none yet; the magic last. */
static void copy_record(const struct target *t, const struct space *s)
{
	const struct guard_record *r = s->guard;
	struct guard_copy head = {.head_size = sizeof(head),
				  .record_size = sizeof(*r),
				  .guardian = t->guard.pid};
	copy_part(s, r, offsetof(struct guard_record, area) + r->area_count * sizeof(r->area[0]));
	copy_part(s, r->trap, r->trap_count * sizeof(r->trap[0]));
	memcpy(head.magic, guard_copy_magic, sizeof(head.magic));
	space_write(s, r->page + GUARD_COPY, &head, sizeof(head));
}

void guard_note_page(struct target *t, struct space *s, taddr_t page)
{
	s->guard->page = page;
	guard_note_areas(s);
	s->guard->has_handler = true;
	copy_record(t, s);
}

void guard_note_handler_gone(struct space *s)
{
	s->guard->has_handler = false;
	copy_part(s, &s->guard->has_handler, sizeof(s->guard->has_handler));
}

void guard_space(struct target *t, struct space *s)
{
	struct guard_record *r = free_record(t);
	if (!r || s->guard)
		return;
	memset(r, 0, offsetof(struct guard_record, area));
	s->guard = r;
	ORDER();
	r->pid = s->reader;
}

void guard_space_forked(struct target *t, const struct space *parent, struct space *child)
{
	struct guard_record *r = parent->guard ? free_record(t) : NULL;
	if (!r)
		return;
	memcpy(r, parent->guard, sizeof(*r));
	r->shared = 0; /* its pads are turned into breakpoints */
	r->masked_thread = 0;
	child->guard = r;
	ORDER();
	r->pid = child->reader;
	if (r->page)
		copy_record(t, child);
}

void guard_space_gone(struct space *s)
{
	if (s->guard)
		s->guard->pid = 0;
	s->guard = NULL;
}

/* -- what was changed -- */

static struct guard_trap *find_trap(struct guard_record *r, taddr_t addr)
{
	for (uint32_t i = 0; i < r->trap_count; i++) {
		if (r->trap[i].addr == addr)
			return &r->trap[i];
	}
	return NULL;
}

/* The handler's table: an entry is whole before it counts. */
static void write_handler_trap(struct space *s, uint32_t index, taddr_t addr, taddr_t resume)
{
	const uint64_t entry[2] = {addr, resume}, count = index + 1;
	taddr_t data = s->guard->page + GUARD_DATA;
	space_write(s, data + offsetof(struct guard_data, trap) + index * sizeof(entry), entry,
		    sizeof(entry));
	if (s->guard->trap_count <= index)
		space_write(s, data + offsetof(struct guard_data, trap_count), &count,
			    sizeof(count));
}

void guard_note_trap(struct space *s, const struct arch *arch, const struct trap *trap)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	guard_note_areas(s);
	struct guard_trap *g = find_trap(r, trap->addr);
	uint32_t index = g ? (uint32_t)(g - r->trap) : r->trap_count;
	if (index == GUARD_RECORD_TRAPS)
		return;
	g = &r->trap[index];
	bool is_jump = trap->kind == TRAP_ENTRY || trap->kind == TRAP_SYSCALL ||
		       trap->kind == TRAP_PAD_EXIT;
	taddr_t resume = is_jump ? trap->stub.jump : trap->addr + arch->trap_pc_offset;
	struct guard_trap now = {trap->addr, resume, {0}, trap->patch_size, trap->kind};
	memcpy(now.original, trap->original, sizeof(now.original));
	*g = now;
	ORDER();
	if (r->page)
		write_handler_trap(s, index, trap->addr, resume);
	copy_part(s, g, sizeof(*g));
	if (index == r->trap_count) {
		r->trap_count++;
		copy_part(s, &r->trap_count, sizeof(r->trap_count));
	}
}

void guard_forget_trap(struct space *s, taddr_t addr)
{
	struct guard_trap *g = s->guard ? find_trap(s->guard, addr) : NULL;
	if (!g)
		return;
	g->patch_size = 0;
	copy_part(s, &g->patch_size, sizeof(g->patch_size));
}

/* The handler's ranges, where a pc that was moved already may stand. */
static void write_handler_range(const struct space *s, uint32_t index, const struct stub_area *a)
{
	const uint64_t range[2] = {a->start, a->start + a->size}, count = index + 1;
	taddr_t data = s->guard->page + GUARD_DATA;
	space_write(s, data + offsetof(struct guard_data, range) + index * sizeof(range), range,
		    sizeof(range));
	space_write(s, data + offsetof(struct guard_data, range_count), &count, sizeof(count));
}

void guard_note_areas(struct space *s)
{
	struct guard_record *r = s->guard;
	if (!r || r->area_count >= s->areas.count)
		return;
	while (r->area_count < s->areas.count && r->area_count < GUARD_RECORD_AREAS) {
		const struct stub_area *a = &s->areas.data[r->area_count];
		struct guard_area *g = &r->area[r->area_count];
		*g = (struct guard_area){a->start, a->size, a->is_pads, a->is_slack, a->is_memory};
		ORDER();
		copy_part(s, g, sizeof(*g));
		r->area_count++;
		copy_part(s, &r->area_count, sizeof(r->area_count));
		if (r->page && r->area_count <= GUARD_RANGES)
			write_handler_range(s, r->area_count - 1, a);
	}
}

void guard_forget_area(struct space *s, taddr_t start)
{
	struct guard_record *r = s->guard;
	for (uint32_t i = 0; r && i < r->area_count; i++) {
		if (r->area[i].start == start)
			r->area[i].size = 0;
	}
	if (r && r->shared == start)
		r->shared = 0;
	if (r)
		copy_part(s, r, offsetof(struct guard_record, trap));
	if (r && r->page == start)
		r->page = 0; /* no copy any more */
}

void guard_note_shared(struct space *s, taddr_t start, uint64_t size)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	r->shared_size = size;
	ORDER();
	r->shared = start;
	copy_part(s, r, offsetof(struct guard_record, area));
}

taddr_t guard_resume_address(const struct space *s, taddr_t trap)
{
	struct guard_trap *g = s->guard ? find_trap(s->guard, trap) : NULL;
	return g ? g->resume : 0;
}

bool guard_has_moved(const struct space *s, taddr_t pc)
{
	const struct guard_record *r = s->guard;
	for (uint32_t i = 0; r && i < r->trap_count; i++) {
		if (r->trap[i].resume == pc)
			return true;
	}
	for (uint32_t i = 0; r && i < r->area_count; i++) {
		if (pc - r->area[i].start < r->area[i].size)
			return true;
	}
	return false;
}

void guard_note_mask(struct space *s, pid_t tid, uint64_t mask)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	r->masked_thread = 0;
	ORDER();
	r->mask = mask;
	ORDER();
	r->masked_thread = tid;
	copy_part(s, &r->masked_thread, offsetof(struct guard_record, trap_count) -
					       offsetof(struct guard_record, masked_thread));
}

/* -- injection -- */

static bool is_zero(const uint8_t *p, size_t size)
{
	while (size > 0 && *p == 0)
		p++, size--;
	return size == 0;
}

/* Nobody uses the zeros that fill an object's last page of text; the vdso's first: no file differs then. */
int guard_find_injection(struct space *s, taddr_t *at_out)
{
	struct guard_record *r = s->guard;
	uint8_t tail[2 * INJECTION_SIZE];
	if (!r)
		return -ENOSPC;
	for (int pass = 0; pass < 2 && !r->injection; pass++) {
		for (size_t i = 0; i < s->modules.count && !r->injection; i++) {
			const struct module *m = s->modules.data[i];
			if (m->is_vdso != (pass == 0) ||
			    space_read(s, m->end - sizeof(tail), tail, sizeof(tail)) != 0 ||
			    !is_zero(tail, sizeof(tail)))
				continue;
			memset(r->injection_saved, 0, sizeof(r->injection_saved));
			ORDER();
			r->injection = m->end - INJECTION_SIZE;
			copy_part(s, &r->injection, sizeof(r->injection));
		}
	}
	*at_out = r->injection;
	return r->injection ? 0 : -ENOSPC;
}

bool guard_has_injection(const struct space *s)
{
	return s->guard && s->guard->injection;
}

void guard_clear_injection(struct space *s)
{
	struct guard_record *r = s->guard;
	if (!r || !r->injection)
		return;
	if (space_write(s, r->injection, r->injection_saved, sizeof(r->injection_saved)) == 0) {
		r->injection = 0;
		copy_part(s, &r->injection, sizeof(r->injection));
	}
}
