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
#include "tracee/guard/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/os/maps.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/trap_table.h"

#define MAX_SHARED (1ull << 36)
#define MAX_USERS 1024 /* of a semaphore */

const char *journal_find_flaw(const struct journal *r, taddr_t page)
{
	if (r->page != page)
		return "it is another page's";
	if (r->trap_count > JOURNAL_TRAPS || r->area_count > JOURNAL_AREAS)
		return "it has too many entries";
	if (r->has_handler > 1 || r->masked_thread < 0 || r->shared_size > MAX_SHARED ||
	    r->file)
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

struct journal_check {
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

static bool is_area(const struct journal_check *c, const struct journal_area *a)
{
	if (a->size == 0)
		return true;
	return is_within(&c->maps, a->start, a->size,
			 a->is_slack ? map_is_text : a->is_memory ? is_memfd : is_own_code);
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

static bool is_semaphore(const struct journal_check *c, const struct journal_trap *g)
{
	uint16_t now, was;
	memcpy(&was, g->original, sizeof(was));
	return g->patch_size == sizeof(was) && is_within(&c->maps, g->addr, sizeof(was), is_data) &&
	       space_read(c->space, g->addr, &now, sizeof(now)) == 0 && now - was >= 0 &&
	       now - was <= MAX_USERS;
}

enum verdict { OURS, GONE, DOUBTFUL };

/* For a trap in the text of an object. */
static enum verdict judge_text(const struct journal_check *c, const struct journal_trap *g)
{
	uint8_t code[sizeof(g->original)];
	taddr_t to;
	if (!is_within(&c->maps, g->addr, g->patch_size, map_is_text) ||
	    space_read(c->space, g->addr, code, g->patch_size) != 0 ||
	    !arch_is_patch(code, g->patch_size, g->addr, &to) ||
	    (to != 0 && !is_in_areas(c->record, to, 1)) ||
	    memcmp(code, g->original, g->patch_size) == 0)
		return GONE;
	return is_in_file(c->space, g->addr, g->original, g->patch_size) ? OURS : DOUBTFUL;
}

static enum verdict judge_trap(const struct journal_check *c, const struct journal_trap *g)
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

static bool is_injection(const struct journal_check *c, taddr_t at)
{
	static const uint8_t zero[INJECTION_SIZE];
	uint8_t code[INJECTION_SIZE];
	return is_within(&c->maps, at, INJECTION_SIZE, map_is_text) &&
	       space_read(c->space, at, code, sizeof(code)) == 0 &&
	       (memcmp(code, zero, sizeof(zero)) == 0 ||
		memcmp(code, c->arch->syscall_insn, c->arch->syscall_insn_size) == 0);
}

static void drop_areas(struct journal_check *c)
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

static const char *prove(struct journal_check *c)
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
	struct journal_check c = {.record = r, .space = s, .arch = arch};
	if (maps_read(s->processes.reader, &c.maps) != 0)
		return "the program's maps cannot be read";
	const char *lie = prove(&c);
	maps_deinit(&c.maps);
	return lie;
}

/*
 * Undoes the changes of a ptmem that was killed together with its guardian, or whose guardian has
 * not finished. Finds the copy of its journal by the size and magic number of its page.
 */

#define WAIT_MS 5000
#define NAP_MS 2
/* Maximum number of journals: of ptmems killed one after the other before they could recover. */
#define MAX_PAGES 4

static bool read_copy(const struct address_space *s, taddr_t page, struct journal_copy *head,
		      struct journal *journal_out)
{
	return space_read(s, page + HANDLER_COPY, head, sizeof(*head)) == 0 &&
	       memcmp(head->magic, journal_copy_magic, sizeof(head->magic)) == 0 &&
	       head->head_size == sizeof(*head) && head->record_size == sizeof(*journal_out) &&
	       space_read(s, page + HANDLER_COPY + sizeof(*head), journal_out,
			  sizeof(*journal_out)) == 0;
}

/* Whether @r, whose numbers are valid, contains anything to remove. */
static bool has_leftover(const struct journal *r)
{
	bool is_left = r->has_handler || r->shared || r->masked_thread;
	for (size_t i = 0; i < JOURNAL_INJECTIONS; i++)
		is_left |= r->injection[i] != 0;
	for (uint32_t i = 0; i < r->trap_count; i++)
		is_left |= r->trap[i].patch_size > 0;
	return is_left;
}

/* A journal that was found, copied once: later changes by the program have no effect. */
struct leftover {
	struct journal_copy head;
	struct journal *journal;
	const char *flaw; /* why it cannot be used; NULL = it can */
};

static bool read_leftover_page(const struct address_space *s, taddr_t page, struct leftover *l)
{
	if (!read_copy(s, page, &l->head, l->journal))
		return false;
	l->flaw = journal_find_flaw(l->journal, page);
	return l->flaw || has_leftover(l->journal);
}

/* Several such pages can be adjacent, in one map. */
static bool may_hold_pages(const struct map *m)
{
	uint64_t size = m->end - m->start;
	return m->is_exec && !m->is_write && !m->path[0] && size % HANDLER_SIZE == 0 &&
	       size / HANDLER_SIZE <= MAX_PAGES;
}

static bool find_leftover(pid_t pid, struct leftover *l)
{
	struct maps maps;
	bool is_found = false;
	pid_t reader = proc_find_reader(pid);
	if (maps_read(reader, &maps) != 0)
		return false;
	struct registry registry = {0};
	struct address_space *s = space_new(&registry, reader);
	for (size_t i = 0; i < maps.list.count && !is_found; i++) {
		const struct map *m = &maps.list.data[i];
		taddr_t end = may_hold_pages(m) ? m->end : m->start;
		for (taddr_t at = m->start; at < end && !is_found; at += HANDLER_SIZE)
			is_found = read_leftover_page(s, at, l);
	}
	space_free(s);
	elf_files_deinit(&registry.files);
	maps_deinit(&maps);
	return is_found;
}

static void nap(void)
{
	const struct timespec time = {0, NAP_MS * 1000000l};
	nanosleep(&time, NULL);
}

/* The guardian that works on @pid, or is about to; 0 = none. */
static pid_t find_guardian(pid_t pid)
{
	struct journal journal;
	struct leftover l = {.journal = &journal};
	pid_t guardian = proc_tracer(pid);
	if (!guardian && find_leftover(pid, &l) && !l.flaw && l.head.guardian > 0)
		guardian = l.head.guardian;
	return guardian && guardian_is(guardian) ? guardian : 0;
}

void recovery_await(pid_t pid)
{
	pid_t last = 0, now;
	for (int ms = 0; ms < WAIT_MS && (now = find_guardian(pid)); ms += NAP_MS) {
		if (now != last)
			log_verbose("process %d: waiting for process %d, which removes what an "
				    "earlier ptmem left", (int)pid, (int)now);
		last = now;
		nap();
	}
}

/*
 * Runs in a separate process, since it waits for any thread, also another target's. It survives a
 * killed ptmem, and counts as a guardian for any ptmem that attaches meanwhile.
 */
static void clean(struct journal *journals, guardian_clean_fn *clean_fn)
{
	pid_t child = fork();
	if (child == 0) {
		guardian_become(open("/dev/null", O_RDWR | O_CLOEXEC));
		clean_fn(journals);
		_exit(0);
	}
	int status;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
}

static void verify_leftover(pid_t pid, struct leftover *l)
{
	struct registry registry = {0};
	struct address_space *s = space_new(&registry, proc_find_reader(pid));
	space_update_modules(s, NULL, NULL, NULL);
	l->flaw = journal_verify(l->journal, s, arch_native);
	space_free(s);
	elf_files_deinit(&registry.files);
}

void recovery_run(pid_t pid, guardian_clean_fn *clean_fn)
{
	struct leftover l = {.journal = journals_new()};
	if (!l.journal)
		return;
	bool is_left = find_leftover(pid, &l), was_left = is_left;
	for (int i = 0; i < MAX_PAGES && is_left && !l.flaw; i++) {
		verify_leftover(pid, &l);
		if (l.flaw)
			break;
		l.journal->pid = pid;
		clean(l.journal, clean_fn);
		is_left = find_leftover(pid, &l);
	}
	if (is_left && l.flaw)
		log_warn("process %d: an earlier ptmem was killed; what it left is not removed, "
			 "since its record there is damaged: %s", (int)pid, l.flaw);
	else if (was_left)
		log_verbose("process %d: an earlier ptmem was killed; what it left %s", (int)pid,
			    is_left ? "could not be removed" : "was removed");
	journals_free(l.journal);
}
