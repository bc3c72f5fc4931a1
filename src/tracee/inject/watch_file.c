/*
 * A new file gets the lowest number that is free: it is recorded before the call that makes the
 * file.
 */
#include "tracee/inject/watch_file.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/text.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

/* The lowest number of a file that @tid does not have; the kernel lists them in order. */
static uint32_t find_next(pid_t tid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/fd", (int)tid);
	DIR *files = opendir(path);
	const struct dirent *e;
	uint32_t next = 0;

	while (files && (e = readdir(files)))
		next += text_is_digit(*e->d_name) && strtoul(e->d_name, NULL, 10) == next;
	if (files)
		closedir(files);
	return next;
}

/* Whether file @fd of @tid is a userfaultfd without any agreement with the kernel. */
static bool is_left(pid_t tid, uint32_t fd)
{
	_cleanup_free_ char *name = xasprintf("fd/%" PRIu32, fd);
	_cleanup_free_ char *info = xasprintf("fdinfo/%" PRIu32, fd), *line = NULL;
	_cleanup_free_ char *target = proc_read_link(tid, name);
	_cleanup_fclose_ FILE *file = proc_open(tid, info);
	uint64_t version, features = 1;
	size_t size = 0;

	if (!target || strcmp(target, "anon_inode:[userfaultfd]") != 0)
		return false;
	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, "API:%" SCNx64 ":%" SCNx64, &version, &features) == 2)
			break;
	return features == 0;
}

void watch_file_close_left(struct target *t, struct address_space *s, struct thread *th)
{
	uint32_t file = s->recovery.journal ? s->recovery.journal->file : 0;
	int64_t closed;

	if (file == 0 || !th)
		return;
	if (is_left(th->tid, file - 1) && seccomp_allows_injection(t, th->tid, NULL) &&
	    inject_syscall(t, th, SYS_close, (const uint64_t[6]){file - 1}, &closed) != 0)
		return; /* the thread is gone: another one tries */
	journal_note_file(s, 0);
}

/* Takes file @fd of process @pid. The caller closes it; -errno. */
static int take_file(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int taken = process < 0 ? -errno : (int)syscall(SYS_pidfd_getfd, process, fd, 0);

	if (process >= 0 && taken < 0)
		taken = -errno;
	if (process >= 0)
		close(process);
	return taken;
}

/* Makes it in @th: *taken_out is ours, or -errno. 0, or -errno of what failed. */
static int make(struct target *t, struct address_space *s, struct thread *th, int *taken_out)
{
	const uint64_t args[6] = {WATCH_WRITES_FLAGS};
	int64_t made = -EIO, closed;
	int rc = inject_syscall(t, th, SYS_userfaultfd, args, &made);

	if (rc != 0 || made < 0)
		return rc != 0 ? rc : (int)made;
	journal_note_file(s, (uint32_t)made + 1);
	*taken_out = take_file(s->processes.reader, (int)made);
	return inject_syscall(t, th, SYS_close, (const uint64_t[6]){(uint64_t)made}, &closed);
}

int watch_file_make(struct target *t, struct address_space *s, int *fd_out)
{
	struct thread *th = seccomp_pick_thread(t, s);
	int taken = -EIO;
	taddr_t at;

	if (!th)
		return -ESRCH;
	/* a process that has no journal was started by ptmem, and ends with it */
	if (seccomp_count_filters(th->tid) != 0 ||
	    (s->recovery.journal && journal_find_injection(s, &at) != 0))
		return -ENOTSUP;
	int rc = inject_drain_sigtrap(t, th);

	if (rc != 0)
		return rc;
	journal_note_file(s, find_next(th->tid) + 1);
	rc = make(t, s, th, &taken);
	if (rc == 0)
		journal_note_file(s, 0);
	if (rc != 0 && taken >= 0)
		close(taken);
	*fd_out = taken;
	return rc != 0 || taken >= 0 ? rc : taken;
}
