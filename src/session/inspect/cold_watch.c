/* The time of --cold in a profile, and the sums by leaf at its end. */
#include "session/inspect/cold_watch.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "profile/profile.h"
#include "session/session.h"
#include "tracee/control/target.h"
#include "tracee/inject/touched_pages.h"
#include "tracee/state/space.h"

#define FIND_NS UINT64_C(2000000000) /* the process is stopped */
#define AT_ONCE 1u

void session_cold_deinit(struct session_cold *c)
{
	touched_pages_deinit(&c->pages);
	vec_deinit(&c->sums);
}

/* -- when -- */

static uint64_t cold_ns(const struct run *run)
{
	return (uint64_t)(run->options->inspect.cold * 1e9);
}

void cold_watch_start(struct run *run)
{
	const struct options *o = run->options;
	uint64_t duration = (uint64_t)(o->attach.duration * 1e9);

	if (o->inspect.cold <= 0 || (!o->attach.pid_count && !duration))
		return;
	run->cold.begin_ns = duration > cold_ns(run) ? clock_now_ns() + duration - cold_ns(run) :
						       AT_ONCE;
}

uint64_t cold_watch_tick(const struct run *run)
{
	const struct cold_times *c = &run->cold;
	uint64_t begin = c->begin_ns ? c->begin_ns : UINT64_MAX;
	uint64_t next = MIN(begin, c->end_ns ? c->end_ns : UINT64_MAX);

	if (next <= clock_now_ns())
		target_wake();
	return next;
}

static void log_failure(const struct session *s, int rc)
{
	log_warn("process %u: what it touches cannot be found: %s", s->process.pid,
		 rc == -ENOTSUP ? "it has a seccomp filter, or no room in its code" :
				  strerror(-rc));
}

static void begin(void *ctx, struct address_space *space)
{
	struct session *s = space->sink.user;
	const struct run *run = ctx;
	int rc = touched_pages_begin(run->target, space);

	if (rc != 0) {
		log_failure(s, rc);
		return;
	}
	s->end.cold.state = COLD_WATCHED;
	s->end.cold.since_ns = clock_now_ns();
	log_verbose("process %u: what it touches counts from now on", s->process.pid);
}

bool cold_watch_poll(struct run *run, bool is_asked, bool is_leaving)
{
	struct cold_times *c = &run->cold;
	uint64_t now = clock_now_ns();

	if (!is_leaving && (is_asked || (c->begin_ns && now >= c->begin_ns))) {
		target_inspect(run->target, begin, run);
		*c = (struct cold_times){.end_ns = clock_now_ns() + cold_ns(run)};
		return false;
	}
	if (!c->end_ns || (!is_leaving && now < c->end_ns))
		return false;
	c->end_ns = 0;
	return true;
}

/* -- what -- */

static void grow(struct session_cold *c, uint32_t leaf)
{
	while (c->sums.count <= leaf)
		*vec_add(&c->sums) = (struct cold_sum){0};
}

struct summation {
	struct session_cold *cold;
	const struct profile *profile;
	size_t at;
};

/* With samples a block counts for all that it was chosen from. */
static int add_block(void *ctx, const struct block *b)
{
	struct summation *s = ctx;
	struct cold_bytes c = cold_bytes_of(&s->cold->pages, &s->at, b->addr, b->size);
	uint64_t bytes = profile_block_weight(s->profile, b).bytes;

	if (bytes != b->size && b->size > 0) {
		double share = (double)bytes / (double)b->size;

		c.cold = (uint64_t)((double)c.cold * share);
		c.shared = (uint64_t)((double)c.shared * share);
	}
	grow(s->cold, b->leaf);
	struct cold_sum *sum = &s->cold->sums.data[b->leaf];

	sum->bytes += bytes;
	sum->untouched.cold += c.cold;
	sum->untouched.shared += c.shared;
	return 0;
}

void cold_watch_find(struct session *s, struct address_space *space)
{
	struct session_cold *c = &s->end.cold;

	if (c->state != COLD_WATCHED)
		return;
	session_cold_deinit(c);
	*c = (struct session_cold){.since_ns = c->since_ns};
	c->seconds = (double)(clock_now_ns() - c->since_ns) / 1e9;
	int rc = touched_pages_find(s->run->target, space, FIND_NS, &c->pages);

	if (rc != 0) {
		log_failure(s, rc);
		return;
	}
	struct summation sum = {.cold = c, .profile = s->heap.profile};

	profile_each_block(s->heap.profile, add_block, &sum);
	c->state = COLD_FOUND;
}
