/*
 * What the guardian does when ptmem is gone: each recorded space is attached to, its
 * text put back by the same code that a normal detach uses, and let go.
 *
 * A target of its own is filled from the record. Nobody can have changed the text
 * meanwhile but the program itself, by unmapping it: so only what still holds our
 * bytes is put back.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/log.h"
#include "target/guard.h"
#include "target/ptrace.h"

#define TRIES 2000 /* of 1 ms: until the kernel has taken ptmem from its threads */

static void event(void *ctx, struct space *s, const struct heap_event *ev)
{
	(void)ctx, (void)s, (void)ev;
}

static void thread_exit(void *ctx, struct space *s, pid_t tid)
{
	(void)ctx, (void)s, (void)tid;
}

/* Whether our bytes are still there. */
static bool is_in_place(const struct target *t, const struct space *s, const struct guard_trap *g)
{
	uint8_t first = 0;
	return g->patch_size > 0 && space_read(s, g->addr, &first, 1) == 0 &&
	       (first == t->arch->trap[0] || g->patch_size > t->arch->trap_size);
}

static void fill_space(struct target *t, struct space *s, const struct guard_record *r)
{
	space_update_modules(s, NULL, NULL, NULL);
	for (uint32_t i = 0; i < r->area_count; i++) {
		const struct guard_area *a = &r->area[i];
		if (a->size > 0 && !a->is_slack)
			*vec_add(&s->areas) = (struct stub_area){.start = a->start,
								 .size = a->size,
								 .used = a->size,
								 .is_pads = a->is_pads,
								 .is_memory = a->is_memory};
	}
	for (uint32_t i = 0; i < r->trap_count; i++) {
		const struct guard_trap *g = &r->trap[i];
		struct trap trap = {.addr = g->addr,
				    .kind = (uint8_t)g->kind,
				    .patch_size = (uint8_t)g->patch_size};
		memcpy(trap.original, g->original, sizeof(trap.original));
		trap.stub.jump =
			g->kind == TRAP_SYSCALL || g->kind == TRAP_PAD_EXIT ? g->resume : 0;
		if (is_in_place(t, s, g))
			space_trap_add(s, &trap);
	}
}

static int seize(struct target *t, struct process *p)
{
	int rc = -EPERM;
	for (int i = 0; i < TRIES && rc == -EPERM; i++) {
		const struct timespec ms = {0, 1000000};
		if (i > 0)
			nanosleep(&ms, NULL);
		rc = target_seize_all(t, p->pid);
	}
	return rc;
}

/* A thread whose signals are still held back as ptmem had to. */
static void give_back_mask(struct target *t, const struct guard_record *r)
{
	const uint64_t open = 1ull << (SIGTRAP - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);
	uint64_t mask = 0;
	if (r->masked_thread && thread_find(t, r->masked_thread) &&
	    ptrace_get_sigmask(r->masked_thread, &mask) == 0 && (mask | open) == ~0ull)
		ptrace_set_sigmask(r->masked_thread, r->mask);
}

static void clean(struct guard_record *records, struct guard_record *r)
{
	const struct target_options options = {.no_probes = true, .no_promotion = true};
	const struct target_sink sink = {.event = event, .thread_exit = thread_exit};
	struct target *t = target_new(&options, &sink);
	struct space *s = space_new(r->pid);
	s->guard = r;
	struct process *p = process_add(t, r->pid, s);
	t->is_guardian = true;
	t->guard.record = records; /* forks are recorded, too */
	s->is_ready = true; /* what is in it must be taken out */
	fill_space(t, s, r);
	if (seize(t, p) == 0) {
		give_back_mask(t, r);
		target_detach(t);
	}
}

void guardian_clean(struct guard_record *records)
{
	log_set_level(LOG_ERROR);
	log_set_line_hook(NULL); /* the screen is its parent's */
	for (size_t i = 0; i < GUARD_SPACES; i++) {
		if (records[i].pid > 0)
			clean(records, &records[i]);
	}
}
