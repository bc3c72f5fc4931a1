/*
 * The guardian's work after ptmem's death: attaches to each recorded space, restores its text with
 * the same code as a normal detach, and detaches.
 *
 * Builds its own target from the record. Only the program itself can have changed the text
 * meanwhile, by unmapping it: so a place is restored only if it still holds our bytes.
 */
#include "tracee/control/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/log.h"
#include "base/proc.h"
#include "tracee/control/control.h"
#include "tracee/control/target.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

#define TRIES 2000 /* in units of 1 ms: until the kernel has released ptmem's threads */

static void event(void *ctx, struct address_space *s, struct heap_event *ev)
{
	(void)ctx, (void)s, (void)ev;
}

static void thread_exit(void *ctx, struct address_space *s, pid_t tid)
{
	(void)ctx, (void)s, (void)tid;
}

/*
 * Whether our bytes are still there. A semaphore counts as raised if its record leads back to
 * itself (requests.c).
 */
static bool is_in_place(const struct address_space *s, const struct journal_trap *g)
{
	uint8_t code[sizeof(g->original)];
	size_t size = MIN(g->patch_size, sizeof(code));
	taddr_t to;
	return size > 0 && space_read(s, g->addr, code, size) == 0 &&
	       (g->resume == g->addr || arch_is_patch(code, size, g->addr, &to));
}

static void fill_space(struct address_space *s, const struct journal *r)
{
	space_update_modules(s, NULL, NULL, NULL);
	for (uint32_t i = 0; i < r->area_count; i++) {
		const struct journal_area *a = &r->area[i];
		if (a->size > 0 && !a->is_slack)
			*vec_add(&s->own.areas) =
				(struct stub_area){.start = a->start,
						   .size = a->size,
						   .used = a->size,
						   .is_pads = a->is_pads,
						   .is_memory = a->is_memory,
						   .is_trap_handler = a->start == r->page};
	}
	for (uint32_t i = 0; i < r->trap_count; i++) {
		const struct journal_trap *g = &r->trap[i];
		struct trap trap = {.addr = g->addr,
				    .kind = (uint8_t)g->kind,
				    .patch_size = (uint8_t)g->patch_size};
		memcpy(trap.original, g->original, sizeof(trap.original));
		trap.stub.jump =
			g->kind == TRAP_SYSCALL || g->kind == TRAP_PAD_EXIT ? g->resume : 0;
		if (is_in_place(s, g))
			space_trap_add(s, &trap);
	}
}

static int seize(struct target *t, pid_t pid)
{
	int rc = -EPERM;
	for (int i = 0; i < TRIES && (rc == -EPERM || rc == -EAGAIN); i++) {
		const struct timespec ms = {0, 1000000};
		if (i > 0)
			nanosleep(&ms, NULL);
		rc = target_seize_all(t, pid);
	}
	return rc == -EAGAIN ? 0 : rc;
}

void cleanup_forget(struct address_space *s)
{
	struct journal *r = s->recovery.journal;

	trap_table_clear(&s->traps);
	own_memory_clear(&s->own);
	s->recovery.injection = 0;
	s->recovery.is_unguarded = false;
	if (!r)
		return;
	r->page = r->shared = 0;
	memset(r->injection, 0, sizeof(r->injection));
	r->has_handler = 0;
	r->trap_count = r->area_count = 0;
}

/*
 * All threads of @s are stopped. Whether the changes recorded in @r are gone: the process executed
 * a program, or another guardian was faster, after which even a third ptmem may have attached.
 */
static bool is_outdated(struct address_space *s, const struct journal *r)
{
	bool is_other = true;
	return space_follow_image(s, &is_other) != 0 || is_other ||
	       (r->page && !trap_handler_is_page(s, r->page)) || journal_is_replaced(s, r);
}

static void clean(struct journal *records, struct journal *r)
{
	const struct target_options options = {.probes = {.none = true, .no_promotion = true}};
	const struct event_sink sink = {.event = event, .thread_exit = thread_exit};
	struct registry registry = {0};
	struct target *t = target_new(&options, &sink, &registry);
	pid_t reader = proc_find_reader(r->pid);
	struct address_space *s = space_new(&registry, r->pid);
	s->recovery.journal = r;
	guardian_take_over(t, records, r);
	s->watch.is_ready = true; /* what is in it must be removed */
	if (reader != r->pid)
		space_set_reader(s, reader);
	if (image_read(reader, &s->image.id) != 0)
		s->image.id = 0;
	fill_space(s, r);
	process_add(t, r->pid, s);
	if (seize(t, r->pid) == 0) {
		guardian_restore_masks(t);
		if (is_outdated(s, r))
			cleanup_forget(s);
		target_detach(t);
	}
}

void cleanup_run(struct journal *records)
{
	log_set_level(LOG_ERROR);
	log_set_line_hook(NULL); /* its parent owns the terminal */
	for (size_t i = 0; i < JOURNALS; i++) {
		if (records[i].pid > 0)
			clean(records, &records[i]);
	}
}
