/*
 * See attach_check.h. Uses only /proc, where only a thread that has not ended has VmSize:
 *
 *	thread with VmSize  the process
 *	the first one       runs
 *	another             runs without its first thread, or is inside execve for a moment
 *	none                is a kernel thread, by its flags; or has ended, or is exiting
 */
#include "tracee/control/attach_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/proc.h"
#include "tracee/control/target.h"
#include "tracee/state/thread.h"

/* The state of the process that @reader is a thread of. */
static enum attach_problem look(pid_t reader, struct proc_status *st)
{
	struct proc_stat stat;
	if (proc_status_read(reader, st) != 0)
		return ATTACH_NO_PROCESS;
	if (st->has_memory)
		return ATTACH_OK;
	bool is_kernel = proc_stat_read(reader, &stat) == 0 && stat.is_kernel_thread;
	return is_kernel ? ATTACH_KERNEL_THREAD : ATTACH_ZOMBIE;
}

enum attach_problem target_check_pid(pid_t pid)
{
	struct proc_status st;
	return look(proc_find_reader(pid), &st);
}

static bool is_our_thread(pid_t pid)
{
	char name[96];
	snprintf(name, sizeof(name), "/proc/%d/task/%d", (int)getpid(), (int)pid);
	return access(name, F_OK) == 0;
}

/* A thread of @pid in an uninterruptible wait, or 0; *sleeps_out: its number of waits so far. */
static pid_t find_blocked(pid_t pid, uint64_t *sleeps_out)
{
	DIR *threads = proc_open_threads(pid);
	pid_t blocked = 0;
	for (pid_t tid; threads && !blocked && (tid = proc_next_thread(threads));) {
		struct proc_status st;
		if (proc_status_read(tid, &st) == 0 && st.state == 'D') {
			blocked = tid;
			*sleeps_out = st.sleeps;
		}
	}
	if (threads)
		closedir(threads);
	return blocked;
}

#define BLOCKED_MS 1000u
#define LOOK_MS 20u

/*
 * A thread of @pid for which the others, once stopped, would have to wait; 0 if there is none.
 * Returns 0 as soon as possible: a wait for a disk, or in vfork, is mostly over at the next check.
 */
static pid_t find_stuck(pid_t pid)
{
	const struct timespec pause = {0, LOOK_MS * 1000000l};
	uint64_t first = 0, sleeps = 0;
	pid_t tid = find_blocked(pid, &first);
	for (unsigned ms = 0; tid && ms < BLOCKED_MS; ms += LOOK_MS) {
		nanosleep(&pause, NULL);
		if (find_blocked(pid, &sleeps) != tid || sleeps != first)
			return 0;
	}
	return tid;
}

#define LEADERLESS_MS 100u

/* Whether @tid waits inside execve. */
static bool is_in_execve(pid_t tid)
{
	_cleanup_fclose_ FILE *f = proc_open(tid, "syscall");
	long number;
	return f && fscanf(f, "%ld", &number) == 1 &&
	       (number == SYS_execve || number == SYS_execveat);
}

/*
 * Whether @pid, whose first thread has ended, executes a program: the thread that does so is about
 * to take the place of the first one, usually within a millisecond.
 */
static bool is_executing(pid_t pid)
{
	const struct timespec pause = {0, LOOK_MS * 1000000l};
	for (unsigned ms = 0; ms < LEADERLESS_MS; ms += LOOK_MS) {
		pid_t reader = proc_find_reader(pid);
		if (reader == pid || is_in_execve(reader))
			return true;
		nanosleep(&pause, NULL);
	}
	return proc_find_reader(pid) == pid;
}

static int errno_of(enum attach_problem problem)
{
	return problem == ATTACH_OK ? 0 : problem == ATTACH_KERNEL_THREAD ? -EPERM : -ESRCH;
}

int attach_check_image(pid_t reader, const struct arch *arch, enum attach_problem *problem_out)
{
	char name[64];
	struct elf_file *file;
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)reader);
	int rc = elf_file_open(NULL, name, NULL, &file);
	if (rc == -EACCES || rc == -EPERM) {
		*problem_out = ATTACH_PERMISSION;
		return -EPERM;
	}
	if (rc != 0)
		return 0; /* install checks the maps later */
	bool fits = file->machine == arch->elf_machine && file->elf_class == arch->elf_class;
	elf_file_release(file);
	if (fits)
		return 0;
	*problem_out = ATTACH_32BIT;
	return -ENOEXEC;
}

int attach_check(pid_t pid, pid_t reader, const struct arch *arch,
		 enum attach_problem *problem_out, long *detail_out)
{
	struct proc_status st;
	*detail_out = 0;
	if (is_our_thread(pid)) {
		*problem_out = ATTACH_SELF;
		return -EINVAL;
	}
	*problem_out = look(reader, &st);
	if (*problem_out != ATTACH_OK)
		return errno_of(*problem_out);
	if (st.tracer) {
		*problem_out = ATTACH_TRACED;
		*detail_out = st.tracer;
		return -EPERM;
	}
	if (reader != pid && is_executing(pid)) {
		*problem_out = ATTACH_EXECUTES;
		return -EAGAIN;
	}
	*detail_out = find_stuck(pid);
	if (*detail_out) {
		*problem_out = ATTACH_STUCK;
		return -EBUSY;
	}
	return attach_check_image(reader, arch, problem_out);
}
