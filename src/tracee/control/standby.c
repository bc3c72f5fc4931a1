/*
 * What happens while ptmem is stopped: a thread that needs it stays stopped, too, for only its
 * tracer can resume it.
 *
 *	the watcher, a process that      sees in /proc that ptmem is stopped, and continues it after
 *	runs as long as there are pads   --max-wait
 *	ptmem                            from now on full rings lose records: no thread waits for
 *	                                 room; handles all pending stops, and stops again
 *	a thread waits again: then       is continued at once, so that signals, new threads and what
 *	SIGCHLD is pending               else needs a tracer pass; it stays awake for longer if this
 *	                                 happens often
 *	ptmem is continued by another    rings are waited for again
 *	process
 *
 * The sender of a SIGCONT tells who it was. (Of two that arrive before ptmem runs the kernel keeps
 * the first. A user's SIGCONT within the microseconds after the watcher's is lost: ptmem stops
 * again, and the user has to repeat it.)
 */
#include "tracee/control/standby.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/control/control_internal.h"
#include "tracee/control/self_stop.h"
#include "tracee/control/timers.h"
#include "tracee/pads/pads.h"
#include "tracee/state/target_internal.h"

#define WATCHER_NAME "heap-watcher"
#define WATCH_MIN_NS 20000000ull  /* the watcher's interval */
#define WATCH_MAX_NS 250000000ull
#define AWAKE_MIN_NS 50000000ull
#define AWAKE_MAX_NS 1000000000ull

/* Of both processes. */
struct watch {
	uint64_t wait_ns;   /* threads wait for a stopped ptmem for so long */
	bool is_paused;
	bool is_idle;       /* ptmem stopped itself when no thread waited for it */
	bool has_continued; /* by the watcher; ptmem clears it */
};

struct standby {
	struct watch *watch;
	int fd;             /* the watcher ends when it is closed */
	pid_t watcher;
	bool is_on;         /* ptmem was stopped, and continued by the watcher */
	uint64_t again_ns;  /* ptmem does not stop again before then */
	uint64_t awake_ns;  /* how long it stays awake */
	uint64_t stopped_ns; /* when it stopped itself the last time */
};

/* -- the watcher -- */

struct inherited {
	struct watch *watch;
	pid_t ptmem;
};

static bool is_waited_for(const struct watch *w, pid_t ptmem)
{
	const uint64_t child = 1ull << (SIGCHLD - 1);
	struct proc_status st;

	if (proc_status_read(ptmem, &st) != 0)
		_exit(0);
	if (st.state != 'T' || __atomic_load_n(&w->is_paused, __ATOMIC_ACQUIRE))
		return false;
	/* else it may have been stopped while it handled a stop, which is not pending any more */
	return (st.pending | st.pending_shared) & child ||
	       !__atomic_load_n(&w->is_idle, __ATOMIC_ACQUIRE);
}

/* How long the watcher sleeps; @waited_ns: how long a thread has waited, 0 = none does. */
static uint64_t interval(uint64_t wait_ns, uint64_t waited_ns)
{
	if (waited_ns)
		return MIN(wait_ns - waited_ns, WATCH_MIN_NS);
	return MIN(MAX(wait_ns / 4, WATCH_MIN_NS), WATCH_MAX_NS);
}

static void run_watcher(void *ctx)
{
	const struct inherited *i = ctx;
	struct watch *w = i->watch;
	uint64_t since = 0, waited = 0;
	pid_t ptmem = i->ptmem;

	for (;;) {
		struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
		uint64_t wait_ns = __atomic_load_n(&w->wait_ns, __ATOMIC_ACQUIRE);
		const uint64_t ns = interval(MAX(wait_ns, waited), waited);

		if (poll(&end, 1, (int)(ns / 1000000)) != 0)
			_exit(0);
		if (!is_waited_for(w, ptmem)) {
			since = waited = 0;
			continue;
		}
		since = since ? since : clock_now_ns();
		waited = MAX(clock_now_ns() - since, 1ull);
		if (waited < wait_ns)
			continue;
		__atomic_store_n(&w->has_continued, true, __ATOMIC_RELEASE);
		kill(ptmem, SIGCONT);
		since = waited = 0;
	}
}

/* -- ptmem -- */

void standby_start(struct target *t)
{
	struct standby *b;
	struct watch *w;

	if (t->control->standby || t->recovery.is_guardian)
		return;
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return;
	w->wait_ns = t->options.probes.max_wait_ns;
	t->control->standby = b = xcalloc(1, sizeof(*b));
	b->watch = w;
	self_stop_hold_continue();
	b->fd = daemon_start_connected(WATCHER_NAME, run_watcher,
				       &(struct inherited){w, getpid()}, &b->watcher);
	if (b->fd < 0)
		log_warn("no process could be started that continues a stopped ptmem: %s",
			 strerror(-b->fd));
}

void standby_free(struct target *t)
{
	struct standby *b = t->control->standby;

	if (!b)
		return;
	if (b->fd >= 0)
		close(b->fd);
	munmap(b->watch, sizeof(*b->watch));
	free(b);
	t->control->standby = NULL;
}

void standby_set_paused(struct target *t, bool is_paused)
{
	if (t->control->standby)
		__atomic_store_n(&t->control->standby->watch->is_paused, is_paused,
				 __ATOMIC_RELEASE);
}

static void set_wait(struct standby *b, uint64_t ns)
{
	__atomic_store_n(&b->watch->wait_ns, ns, __ATOMIC_RELEASE);
}

static void end(struct target *t)
{
	struct standby *b = t->control->standby;

	log_debug("continued: rings are waited for again");
	b->is_on = false;
	b->awake_ns = 0;
	set_wait(b, t->options.probes.max_wait_ns);
	pads_set_losing(t, false);
}

static void stay_awake(struct target *t)
{
	struct standby *b = t->control->standby;
	uint64_t now = clock_now_ns();
	bool is_often = now - b->stopped_ns < AWAKE_MAX_NS;

	b->awake_ns = is_often ? MIN(MAX(2 * b->awake_ns, AWAKE_MIN_NS), AWAKE_MAX_NS) :
				 AWAKE_MIN_NS;
	b->again_ns = now + b->awake_ns;
	timers_wake_by(t, b->again_ns);
}

/* The watcher has continued ptmem, unless another process did so before. */
static void begin(struct target *t)
{
	struct standby *b = t->control->standby;
	pid_t by = self_stop_continued_by();

	if (by && by != b->watcher) {
		if (b->is_on)
			end(t);
		return;
	}
	if (!b->is_on) {
		log_debug("stopped: full rings lose records");
		b->is_on = true;
		set_wait(b, 0);
		pads_set_losing(t, true);
	}
	stay_awake(t);
}

void standby_follow(struct target *t)
{
	struct standby *b = t->control->standby;

	if (!b)
		return;
	if (__atomic_exchange_n(&b->watch->has_continued, false, __ATOMIC_ACQ_REL))
		begin(t);
	if (!b->is_on || clock_now_ns() < b->again_ns || !self_stop_serve_pending(t))
		return;
	if (!self_stop_continued_by()) {
		b->stopped_ns = clock_now_ns();
		__atomic_store_n(&b->watch->is_idle, true, __ATOMIC_RELEASE);
		raise(SIGSTOP);
		__atomic_store_n(&b->watch->is_idle, false, __ATOMIC_RELEASE);
		t->now_ns = clock_now_ns();
		if (__atomic_load_n(&b->watch->has_continued, __ATOMIC_ACQUIRE))
			return; /* the next turn */
	}
	end(t);
}
