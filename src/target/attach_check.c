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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_file.h"

struct proc_status {
	long tracer, uid;
	char state;
	bool has_memory;
};

static int read_status(const char *path, struct proc_status *out)
{
	char line[256];
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	*out = (struct proc_status){.tracer = 0, .uid = -1};
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "TracerPid: %ld", &out->tracer);
		sscanf(line, "Uid: %ld", &out->uid);
		sscanf(line, "State: %c", &out->state);
		out->has_memory |= strncmp(line, "VmSize:", 7) == 0;
	}
	return 0;
}

static bool has_living_thread(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	DIR *dir = opendir(path);
	bool is_found = false;
	for (struct dirent *e; dir && !is_found && (e = readdir(dir));) {
		struct proc_status st;
		char status[sizeof(path) + sizeof(e->d_name) + sizeof("//status")];
		snprintf(status, sizeof(status), "%s/%s/status", path, e->d_name);
		is_found = *e->d_name != '.' && read_status(status, &st) == 0 && st.has_memory;
	}
	if (dir)
		closedir(dir);
	return is_found;
}

static int read_status_of(pid_t pid, struct proc_status *out)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	return read_status(path, out);
}

static bool is_dead(const struct proc_status *st)
{
	return st->state == 'Z' || st->state == 'X';
}

bool attach_is_dead(pid_t tid)
{
	struct proc_status st;
	return read_status_of(tid, &st) != 0 || is_dead(&st);
}

static enum attach_problem look(pid_t pid, struct proc_status *st)
{
	if (read_status_of(pid, st) != 0)
		return ATTACH_NO_PROCESS;
	if (is_dead(st))
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
