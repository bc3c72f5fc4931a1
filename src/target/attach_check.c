/*
 * See attach_check.h; what can be known from /proc alone.
 *
 *	State  VmSize                       the process
 *	Z, X   no    no other thread has    has ended, its parent did not ask yet
 *	Z, X   no    some other thread has  runs on without its first thread
 *	other  no                           is a kernel thread
 */
#include "target/attach_check.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/proc.h"

static bool has_living_thread(pid_t pid)
{
	DIR *threads = proc_open_threads(pid);
	bool is_found = false;
	for (pid_t tid; threads && !is_found && (tid = proc_next_thread(threads));) {
		struct proc_status st;
		is_found = proc_status_read(tid, &st) == 0 && st.process == pid && st.has_memory;
	}
	if (threads)
		closedir(threads);
	return is_found;
}

static enum attach_problem look(pid_t pid, struct proc_status *st)
{
	if (proc_status_read(pid, st) != 0)
		return ATTACH_NO_PROCESS;
	if (proc_status_is_dead(st))
		return has_living_thread(pid) ? ATTACH_DEAD_LEADER : ATTACH_ZOMBIE;
	return st->has_memory ? ATTACH_OK : ATTACH_KERNEL_THREAD;
}

enum attach_problem target_look(pid_t pid)
{
	struct proc_status st;
	return look(pid, &st);
}

static bool is_our_thread(pid_t pid)
{
	char name[96];
	snprintf(name, sizeof(name), "/proc/%d/task/%d", (int)getpid(), (int)pid);
	return access(name, F_OK) == 0;
}

static int errno_of(enum attach_problem problem)
{
	return problem == ATTACH_OK ? 0 : problem == ATTACH_KERNEL_THREAD ? -EPERM : -ESRCH;
}

int attach_check(pid_t pid, const struct arch *arch, enum attach_problem *problem_out,
		 long *detail_out)
{
	struct proc_status st;
	*detail_out = 0;
	if (is_our_thread(pid)) {
		*problem_out = ATTACH_SELF;
		return -EINVAL;
	}
	*problem_out = look(pid, &st);
	if (*problem_out != ATTACH_OK)
		return errno_of(*problem_out);
	if (st.tracer) {
		*problem_out = ATTACH_TRACED;
		*detail_out = st.tracer;
		return -EPERM;
	}
	char name[64];
	struct elf_file *file;
	snprintf(name, sizeof(name), "/proc/%d/exe", (int)pid);
	int rc = elf_file_open(name, NULL, &file);
	if (rc == -EACCES || rc == -EPERM) {
		*problem_out = ATTACH_PERMISSION;
		*detail_out = st.uid;
		return -EPERM;
	}
	if (rc != 0)
		return 0; /* the maps will tell */
	bool fits = file->machine == arch->elf_machine && file->elf_class == arch->elf_class;
	elf_file_release(file);
	*problem_out = ATTACH_32BIT;
	return fits ? 0 : -ENOEXEC;
}
