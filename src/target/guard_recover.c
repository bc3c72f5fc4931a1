/*
 * What a ptmem left that was killed together with its guardian, or whose guardian has not
 * got there yet. See guard.h; the copy of its record is found by its page's size and magic.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "target/guard.h"
#include "target/maps.h"

#define WAIT_MS 5000
#define NAP_MS 2
#define MAX_PAGES 4 /* of ptmems that were killed one after the other, before they had done this */

static bool read_copy(const struct space *s, taddr_t page, struct guard_copy *head,
		      struct guard_record *record_out)
{
	return space_read(s, page + GUARD_COPY, head, sizeof(*head)) == 0 &&
	       memcmp(head->magic, guard_copy_magic, sizeof(head->magic)) == 0 &&
	       head->head_size == sizeof(*head) && head->record_size == sizeof(*record_out) &&
	       space_read(s, page + GUARD_COPY + sizeof(*head), record_out, sizeof(*record_out)) ==
		       0;
}

/* Whether @r, which the program could have overwritten, is one, and tells of anything to take out. */
static bool has_leftover(const struct guard_record *r, taddr_t page)
{
	bool is_left = r->has_handler || r->injection || r->shared || r->masked_thread;
	if (r->page != page || r->trap_count > GUARD_RECORD_TRAPS ||
	    r->area_count > GUARD_RECORD_AREAS)
		return false;
	for (uint32_t i = 0; i < r->trap_count; i++) {
		if (r->trap[i].patch_size > sizeof(r->trap[i].original))
			return false;
		is_left |= r->trap[i].patch_size > 0;
	}
	return is_left;
}

/* Two pages can lie side by side, and are one map then. */
static bool find_leftover(pid_t pid, struct guard_copy *head, struct guard_record *record_out)
{
	struct maps maps;
	bool is_found = false;
	if (maps_read(pid, &maps) != 0)
		return false;
	struct space *s = space_new(pid);
	for (size_t i = 0; i < maps.list.count && !is_found; i++) {
		const struct map *m = &maps.list.data[i];
		if (!m->is_exec || m->is_write || m->path[0] || (m->end - m->start) % GUARD_SIZE)
			continue;
		for (taddr_t at = m->start; at < m->end && !is_found; at += GUARD_SIZE)
			is_found = read_copy(s, at, head, record_out) &&
				   has_leftover(record_out, at);
	}
	space_free(s);
	maps_deinit(&maps);
	return is_found;
}

static void nap(void)
{
	const struct timespec time = {0, NAP_MS * 1000000l};
	nanosleep(&time, NULL);
}

static bool is_guardian_at_work(pid_t pid)
{
	struct proc_status st;
	struct guard_copy head;
	struct guard_record record;
	if (proc_status_read(pid, &st) == 0 && st.tracer)
		return guard_is_guardian(st.tracer);
	return find_leftover(pid, &head, &record) && head.guardian > 0 &&
	       guard_is_guardian(head.guardian);
}

void guard_await(pid_t pid)
{
	for (int ms = 0; ms < WAIT_MS && is_guardian_at_work(pid); ms += NAP_MS)
		nap();
}

/* In a process of its own: it waits for whatever the threads of another do. */
static void clean(struct guard_record *records)
{
	pid_t child = fork();
	if (child == 0) {
		guardian_clean(records);
		_exit(0);
	}
	int status;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
}

void guard_recover(pid_t pid)
{
	struct guard_copy head;
	struct guard_record *records = guard_records_new();
	if (!records)
		return;
	bool is_left = find_leftover(pid, &head, &records[0]);
	bool was_left = is_left;
	for (int i = 0; i < MAX_PAGES && is_left; i++) {
		records[0].pid = pid;
		clean(records);
		is_left = find_leftover(pid, &head, &records[0]);
	}
	if (was_left)
		log_verbose("process %d: an earlier ptmem was killed; what it left %s", (int)pid,
			    is_left ? "could not be taken out" : "was taken out");
	guard_records_free(records);
}
