/* Starts, runs and stops the guardian process. */
#include "tracee/guard/guardian.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/own_process.h"
#include "base/proc.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/journal.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/* In ptmem: its guardian. In a guardian: its ptmem. */
struct guardian {
	int fd;              /* connected socket; -1 = it could not be started */
	/* thread whose mask ptmem had changed when it died (0 = none), and the old mask */
	pid_t masked_thread;
	uint64_t mask;
};

#define GUARDIAN_NAME "heap-guardian"

bool guardian_is(pid_t pid)
{
	char name[sizeof(GUARDIAN_NAME) + 1] = "";
	_cleanup_fclose_ FILE *file = proc_open(pid, "comm");
	return file && fgets(name, sizeof(name), file) &&
	       strcmp(name, GUARDIAN_NAME "\n") == 0 && !proc_is_dead(pid);
}

void guardian_become(int fd)
{
	daemon_become(fd, GUARDIAN_NAME);
}

/* What a new guardian knows. */
struct guardian_inherited {
	struct journal *journals;
	guardian_clean_fn *clean;
};

static void run_guardian(void *ctx)
{
	const struct guardian_inherited *i = ctx;
	char c = 0;
	ssize_t n;
	while ((n = read(STDIN_FILENO, &c, 1)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		i->clean(i->journals);
	_exit(0);
}

int guardian_start(struct target *t, guardian_clean_fn *clean)
{
	pid_t pid = 0;
	if (t->recovery.journals)
		return 0;
	struct journal *journals = journals_new();
	if (!journals)
		return -ENOMEM;
	int fd = daemon_start_connected(GUARDIAN_NAME, run_guardian,
					&(struct guardian_inherited){journals, clean}, &pid);
	t->recovery.guardian = xcalloc(1, sizeof(*t->recovery.guardian));
	t->recovery.guardian->fd = MAX(fd, -1);
	t->recovery.guardian_pid = pid;
	t->recovery.journals = journals;
	if (fd < 0)
		log_warn("no guardian process could be started: %s", strerror(-fd));
	return 0;
}

void guardian_stop(struct target *t)
{
	struct guardian *g = t->recovery.guardian;
	char c = 'q';
	if (!g)
		return;
	if (g->fd >= 0 && send(g->fd, &c, 1, MSG_NOSIGNAL) == 1) {
		while (read(g->fd, &c, 1) < 0 && errno == EINTR)
			;
	}
	if (g->fd >= 0)
		close(g->fd);
	journals_free(t->recovery.journals);
	free(g);
	t->recovery.journals = NULL;
	t->recovery.guardian = NULL;
	t->recovery.guardian_pid = 0;
}

void guardian_take_over(struct target *t, struct journal *journals, const struct journal *record)
{
	t->recovery.is_guardian = true;
	t->recovery.journals = journals; /* forks are recorded, too */
	t->recovery.guardian = xcalloc(1, sizeof(*t->recovery.guardian));
	*t->recovery.guardian = (struct guardian){
		.fd = -1, .masked_thread = record->masked_thread, .mask = record->mask};
}

/*
 * Restores the mask of a thread whose signals ptmem had blocked, and of those that it created or
 * that executed a program since, which inherited the mask. Called before a thread works for the
 * guardian, and again after the threads were stepped out of the SIGTRAP handler, whose return
 * restores the earlier mask.
 */
void guardian_restore_masks(struct target *t)
{
	const struct guardian *g = t->recovery.guardian;
	const struct thread *th;
	if (!g || !g->masked_thread)
		return;
	for_each_thread(t, th) {
		uint64_t mask = 0;
		if (ptrace_get_sigmask(th->tid, &mask) != 0)
			continue;
		mask |= SIGNALS_UNBLOCKABLE;
		if (mask == ~SIGTRAP_BIT || (mask == ~0ull && th->tid == g->masked_thread))
			ptrace_set_sigmask(th->tid, g->mask);
	}
}
