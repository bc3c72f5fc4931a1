/*
 * Records ptmem's changes in each space for the guardian: in memory shared with it, and in a copy
 * in the page in the target.
 */
#include "tracee/state/journal.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

/*
 * Prevents the compiler from reordering a record's stores; a dying process's own stores are seen in
 * order.
 */
#define ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

const char journal_copy_magic[8] = "ptmem\02\0";

struct journal *journals_new(void)
{
	void *p = mmap(NULL, sizeof(struct journal) * JOURNALS, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void journals_free(struct journal *records)
{
	munmap(records, sizeof(*records) * JOURNALS);
}

static struct journal *free_record(struct target *t)
{
	for (size_t i = 0; t->recovery.journals && i < JOURNALS; i++) {
		if (t->recovery.journals[i].pid == 0)
			return &t->recovery.journals[i];
	}
	return NULL;
}

/* Copies @part of @s's record to its page, if it has one. */
static void copy_part(const struct address_space *s, const void *part, size_t size)
{
	const struct journal *r = s->recovery.journal;
	size_t offset = (size_t)((const char *)part - (const char *)r);
	if (r->page)
		space_write(s, r->page + HANDLER_COPY + sizeof(struct journal_copy) + offset, part,
			    size);
}

/* Copies the complete record, except for unused ends of tables, to a new page; the magic last. */
static void copy_record(const struct target *t, const struct address_space *s)
{
	const struct journal *r = s->recovery.journal;
	struct journal_copy head = {.head_size = sizeof(head),
				  .record_size = sizeof(*r),
				  .guardian = t->recovery.guardian_pid};
	copy_part(s, r, offsetof(struct journal, area) + r->area_count * sizeof(r->area[0]));
	copy_part(s, r->trap, r->trap_count * sizeof(r->trap[0]));
	memcpy(head.magic, journal_copy_magic, sizeof(head.magic));
	space_write(s, r->page + HANDLER_COPY, &head, sizeof(head));
}

void journal_note_handler(struct target *t, struct address_space *s, taddr_t page)
{
	s->recovery.journal->page = page;
	journal_note_areas(s);
	s->recovery.journal->has_handler = true;
	copy_record(t, s);
}

void journal_note_handler_gone(struct address_space *s)
{
	s->recovery.journal->has_handler = false;
	copy_part(s, &s->recovery.journal->has_handler, sizeof(s->recovery.journal->has_handler));
}

void journal_begin(struct target *t, struct address_space *s)
{
	struct journal *r = free_record(t);
	if (!r || s->recovery.journal)
		return;
	memset(r, 0, offsetof(struct journal, area));
	r->id = clock_now_ns();
	s->recovery.journal = r;
	ORDER();
	r->pid = s->processes.pid;
}

bool journal_is_replaced(const struct address_space *s, const struct journal *r)
{
	struct journal_copy head;
	uint64_t id;
	taddr_t at = r->page + HANDLER_COPY;
	if (!r->page || space_read(s, at, &head, sizeof(head)) != 0 ||
	    memcmp(head.magic, journal_copy_magic, sizeof(head.magic)) != 0)
		return false;
	return head.record_size != sizeof(*r) ||
	       space_read(s, at + sizeof(head) + offsetof(struct journal, id), &id, sizeof(id)) !=
		       0 ||
	       id != r->id;
}

void journal_fork(struct target *t, const struct address_space *parent,
			struct address_space *child)
{
	struct journal *r = parent->recovery.journal ? free_record(t) : NULL;
	child->recovery.had_trap_handler = parent->recovery.had_trap_handler;
	child->recovery.is_unguarded = parent->recovery.is_unguarded;
	if (!r)
		return;
	memcpy(r, parent->recovery.journal, sizeof(*r));
	r->shared = 0; /* its pads become breakpoints */
	r->masked_thread = 0;
	r->file = 0;
	child->recovery.journal = r;
	child->recovery.injection = parent->recovery.injection;
	ORDER();
	r->pid = child->processes.pid;
	if (r->page)
		copy_record(t, child);
	journal_note_areas(child);
}

void journal_end(struct address_space *s)
{
	if (s->recovery.journal)
		s->recovery.journal->pid = 0;
	s->recovery.journal = NULL;
}

/* -- what was changed -- */

static struct journal_trap *find_trap(struct journal *r, taddr_t addr)
{
	for (uint32_t i = 0; i < r->trap_count; i++) {
		if (r->trap[i].addr == addr)
			return &r->trap[i];
	}
	return NULL;
}

#define TRAPS_AT_ONCE 64u

/* The handler's table; an entry is complete before it counts. */
static void write_handler_traps(const struct address_space *s, uint32_t first, uint32_t end)
{
	const struct journal *r = s->recovery.journal;
	const uint64_t count = r->trap_count;
	const taddr_t data = r->page + HANDLER_DATA;
	uint64_t entry[TRAPS_AT_ONCE][2];
	for (uint32_t n; first < end; first += n) {
		n = MIN(end - first, TRAPS_AT_ONCE);
		for (uint32_t i = 0; i < n; i++) {
			entry[i][0] = r->trap[first + i].addr;
			entry[i][1] = r->trap[first + i].resume;
		}
		space_write(s,
			    data + offsetof(struct handler_data, trap) + first * sizeof(entry[0]),
			    entry, n * sizeof(entry[0]));
	}
	space_write(s, data + offsetof(struct handler_data, trap_count), &count, sizeof(count));
}

/* The traps [first, end) have changed. */
static void copy_traps(const struct address_space *s, uint32_t first, uint32_t end)
{
	const struct journal *r = s->recovery.journal;
	if (!r->page || first >= end)
		return;
	write_handler_traps(s, first, end);
	copy_part(s, &r->trap[first], (end - first) * sizeof(r->trap[0]));
	copy_part(s, &r->trap_count, sizeof(r->trap_count));
}

void journal_hold(struct address_space *s)
{
	s->recovery.is_held = true;
	s->recovery.held_first = JOURNAL_TRAPS;
	s->recovery.held_end = 0;
}

void journal_flush(struct address_space *s)
{
	s->recovery.is_held = false;
	if (s->recovery.journal)
		copy_traps(s, s->recovery.held_first, s->recovery.held_end);
}

taddr_t journal_trap_resume(const struct arch *arch, const struct trap *trap)
{
	bool is_jump = trap->kind == TRAP_ENTRY || trap->kind == TRAP_SYSCALL ||
		       trap->kind == TRAP_AGAIN || trap->kind == TRAP_PAD_EXIT;

	return is_jump ? trap->stub.jump : trap->addr + arch->trap_size;
}

void journal_add_trap(struct address_space *s, const struct arch *arch, const struct trap *trap)
{
	struct journal *r = s->recovery.journal;
	if (!r)
		return;
	journal_note_areas(s);
	struct journal_trap *g = find_trap(r, trap->addr);
	uint32_t index = g ? (uint32_t)(g - r->trap) : r->trap_count;
	if (index == JOURNAL_TRAPS)
		return;
	g = &r->trap[index];
	struct journal_trap now = {
		trap->addr, journal_trap_resume(arch, trap), {0}, trap->patch_size, trap->kind};
	memcpy(now.original, trap->original, sizeof(now.original));
	*g = now;
	ORDER();
	r->trap_count = MAX(r->trap_count, index + 1);
	if (s->recovery.is_held) {
		s->recovery.held_first = MIN(s->recovery.held_first, index);
		s->recovery.held_end = MAX(s->recovery.held_end, index + 1);
	} else {
		copy_traps(s, index, index + 1);
	}
}

void journal_remove_trap(struct address_space *s, taddr_t addr)
{
	struct journal_trap *g = s->recovery.journal ? find_trap(s->recovery.journal, addr) : NULL;
	if (!g)
		return;
	g->patch_size = 0;
	copy_part(s, &g->patch_size, sizeof(g->patch_size));
}

/* The handler's ranges for a pc that was already moved. */
static void write_handler_range(const struct address_space *s, uint32_t index,
				const struct stub_area *a)
{
	const uint64_t range[2] = {a->start, a->start + a->size}, count = index + 1;
	taddr_t data = s->recovery.journal->page + HANDLER_DATA;
	space_write(s, data + offsetof(struct handler_data, range) + index * sizeof(range), range,
		    sizeof(range));
	space_write(s, data + offsetof(struct handler_data, range_count), &count, sizeof(count));
}

void journal_note_areas(struct address_space *s)
{
	struct journal *r = s->recovery.journal;
	if (!r || r->area_count >= s->own.areas.count)
		return;
	while (r->area_count < s->own.areas.count && r->area_count < JOURNAL_AREAS) {
		const struct stub_area *a = &s->own.areas.data[r->area_count];
		struct journal_area *g = &r->area[r->area_count];
		*g = (struct journal_area){
			a->start, a->size, a->is_pads, a->is_slack, a->is_memory};
		ORDER();
		copy_part(s, g, sizeof(*g));
		r->area_count++;
		copy_part(s, &r->area_count, sizeof(r->area_count));
		if (r->page && r->area_count <= HANDLER_RANGES)
			write_handler_range(s, r->area_count - 1, a);
	}
}

void journal_remove_area(struct address_space *s, taddr_t start)
{
	struct journal *r = s->recovery.journal;
	for (uint32_t i = 0; r && i < r->area_count; i++) {
		if (r->area[i].start == start)
			r->area[i].size = 0;
	}
	if (r && r->shared == start)
		r->shared = 0;
	if (r)
		copy_part(s, r, offsetof(struct journal, trap));
	if (r && r->page == start)
		r->page = 0; /* no copy any more */
}

void journal_note_shared(struct address_space *s, taddr_t start, uint64_t size)
{
	struct journal *r = s->recovery.journal;
	if (!r)
		return;
	r->shared_size = size;
	ORDER();
	r->shared = start;
	copy_part(s, r, offsetof(struct journal, area));
}

taddr_t journal_resume_address(const struct address_space *s, taddr_t trap)
{
	struct journal_trap *g = s->recovery.journal ? find_trap(s->recovery.journal, trap) : NULL;
	return g ? g->resume : 0;
}

bool journal_has_moved(const struct address_space *s, taddr_t pc)
{
	const struct journal *r = s->recovery.journal;
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

void journal_note_mask(struct address_space *s, pid_t tid, uint64_t mask)
{
	struct journal *r = s->recovery.journal;
	if (!r)
		return;
	r->masked_thread = 0;
	ORDER();
	r->mask = mask;
	ORDER();
	r->masked_thread = tid;
	copy_part(s, &r->masked_thread,
		  offsetof(struct journal, file) - offsetof(struct journal, masked_thread));
}

void journal_note_file(struct address_space *s, uint32_t file)
{
	if (s->recovery.journal)
		s->recovery.journal->file = file;
}

/* -- injection -- */

static taddr_t *find_free_injection(struct journal *r)
{
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++) {
		if (!r->injection[i])
			return &r->injection[i];
	}
	return NULL;
}

/*
 * Finds room among the zeros that fill the last page of text of @m; 0 = none. The lowest zeros may
 * be the end of code, and at the top there may be another process's injected code.
 */
static taddr_t find_room(const struct address_space *s, const struct module *m)
{
	uint8_t tail[2 * INJECTION_SIZE];
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++) {
		taddr_t end = m->end - i * INJECTION_SIZE;
		if (space_read(s, end - sizeof(tail), tail, sizeof(tail)) == 0 &&
		    are_zeros(tail, sizeof(tail)))
			return end - INJECTION_SIZE;
	}
	return 0;
}

/* The vdso's first: then no file's text differs, even if this process dies before clearing it. */
int journal_find_injection(struct address_space *s, taddr_t *at_out)
{
	struct journal *r = s->recovery.journal;
	taddr_t *place = r ? find_free_injection(r) : NULL;
	if (!r || (!place && !s->recovery.injection))
		return -ENOSPC;
	for (int pass = 0; pass < 2 && !s->recovery.injection; pass++) {
		for (size_t i = 0; i < s->modules.count && !s->recovery.injection; i++) {
			const struct module *m = s->modules.data[i];
			if (m->is_vdso != (pass == 0))
				continue;
			s->recovery.injection = *place = find_room(s, m);
			copy_part(s, place, sizeof(*place));
		}
	}
	*at_out = s->recovery.injection;
	return s->recovery.injection ? 0 : -ENOSPC;
}

int journal_injection_at(const struct address_space *s, taddr_t pc)
{
	for (size_t i = 0; s->recovery.journal && i < JOURNAL_INJECTIONS; i++) {
		taddr_t at = s->recovery.journal->injection[i];
		if (at && pc - at < INJECTION_SIZE)
			return (int)i;
	}
	return -1;
}

bool journal_has_injection(const struct address_space *s)
{
	bool has_one = false;
	for (size_t i = 0; s->recovery.journal && i < JOURNAL_INJECTIONS; i++)
		has_one |= s->recovery.journal->injection[i] != 0;
	return has_one;
}

void journal_clear_injections(struct address_space *s, const bool used[JOURNAL_INJECTIONS])
{
	static const uint8_t zero[INJECTION_SIZE];
	struct journal *r = s->recovery.journal;
	for (size_t i = 0; r && i < JOURNAL_INJECTIONS; i++) {
		bool is_own = r->injection[i] == s->recovery.injection;
		if (!r->injection[i] || (used[i] && !is_own) ||
		    space_write(s, r->injection[i], zero, sizeof(zero)) != 0)
			continue;
		if (is_own)
			s->recovery.injection = 0;
		r->injection[i] = 0;
		copy_part(s, &r->injection[i], sizeof(r->injection[i]));
	}
}
