/*
 * Undoes the changes of a ptmem that was killed together with its guardian, or whose guardian has
 * not finished. Finds the copy of its journal by the size and magic number of its page.
 */
#include "tracee/guard/recovery.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/journal_check.h"
#include "tracee/os/maps.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/registry.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/trap.h"

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
	struct proc_status st;
	struct journal journal;
	struct leftover l = {.journal = &journal};
	pid_t guardian = 0;
	if (proc_status_read(proc_find_reader(pid), &st) == 0 && st.tracer)
		guardian = st.tracer;
	else if (find_leftover(pid, &l) && !l.flaw && l.head.guardian > 0)
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

static void prove(pid_t pid, struct leftover *l)
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
		prove(pid, &l);
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
