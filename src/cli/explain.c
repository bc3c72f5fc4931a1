/* Finds the reason for a failure: another tracer, another user, a sysctl. */
#include "cli/explain.h"

#include <dirent.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/files.h"
#include "base/go_table.h"
#include "base/log.h"
#include "base/proc.h"
#include "live/follow.h"
#include "session/options.h"
#include "tracee/os/ptrace.h"

/* Outputs, files below /proc and of one process, libraries whose symbols are read, the server. */
#define OWN_DESCRIPTORS 29u

#define NO_PROBES_HINT \
	"Its code is like that of no malloc which ptmem recognizes (glibc 2.31 to 2.44, " \
	"musl 1.2, jemalloc 5); " \
	"--probe=malloc=0xADDRESS and others name its functions; --trace=brk,mmap " \
	"profiles its system calls"

struct line {
	char text[64]; /* "" if there is none */
};

static struct line first_line(FILE *file)
{
	_cleanup_fclose_ FILE *f = file;
	struct line line = {""};
	if (f && fgets(line.text, sizeof(line.text), f))
		line.text[strcspn(line.text, "\n")] = '\0';
	return line;
}

static const char *or_unknown(const struct line *line)
{
	return line->text[0] ? line->text : "unknown";
}

static struct line paranoid_level(void)
{
	return first_line(fopen("/proc/sys/kernel/perf_event_paranoid", "re"));
}

#define NO_PTRACE "a seccomp filter forbids ptrace here; for Docker: --cap-add=SYS_PTRACE"

static bool is_in_other_user_namespace(pid_t pid)
{
	struct line its = first_line(proc_open(pid, "uid_map"));
	struct line ours = first_line(proc_open(getpid(), "uid_map"));
	return strcmp(its.text, ours.text) != 0;
}

/* Although ptmem runs as the user of process @pid, or as root. */
static void explain_refusal_to_user(pid_t pid, bool has_ptrace)
{
	struct line scope = first_line(fopen("/proc/sys/kernel/yama/ptrace_scope", "re"));
	if (is_in_other_user_namespace(pid))
		log_error("process %d may not be traced: it is in another user namespace, in which "
			  "ptmem has no CAP_SYS_PTRACE; run ptmem in that, or in the one that it "
			  "was created from", pid);
	else if (strcmp(scope.text, "3") == 0)
		log_error("process %d may not be traced: kernel.yama.ptrace_scope is 3, which "
			  "forbids all attaching until the next boot", pid);
	else if (has_ptrace)
		log_error("process %d may not be traced, although ptmem has CAP_SYS_PTRACE: it is "
			  "traced from outside of this container, or a security module (AppArmor, "
			  "SELinux) forbids it", pid);
	else if (geteuid() == 0)
		log_error("process %d may not be traced: ptmem has no CAP_SYS_PTRACE; for Docker: "
			  "--cap-add=SYS_PTRACE", pid);
	else if (strcmp(scope.text, "1") == 0 || strcmp(scope.text, "2") == 0)
		log_error("process %d may not be traced: kernel.yama.ptrace_scope is %s; run ptmem "
			  "as root, or allow it with: sysctl kernel.yama.ptrace_scope=0",
			  pid, scope.text);
	else
		log_error("process %d may not be traced: it changed its user, forbids it "
			  "(PR_SET_DUMPABLE), or is traced from outside of this container; run "
			  "ptmem as root with CAP_SYS_PTRACE", pid);
}

static void explain_permission(pid_t pid)
{
	struct proc_status its, ours;
	if (!ptrace_is_allowed())
		log_error("process %d may not be traced: " NO_PTRACE, pid);
	else if (proc_status_read(pid, &its) != 0 || proc_status_read(getpid(), &ours) != 0)
		log_error("process %d: no such process", pid);
	else if (its.uid != (int64_t)geteuid() && geteuid() != 0)
		log_error("process %d belongs to user %lld: run ptmem as that user or as root", pid,
			  (long long)its.uid);
	else
		explain_refusal_to_user(pid, ours.capabilities >> CAP_SYS_PTRACE & 1);
}

bool explain_proc(void)
{
	if (proc_is_ours())
		return true;
	if (access("/proc/stat", F_OK) != 0)
		log_error("/proc is not mounted, and ptmem needs it: mount -t proc proc /proc");
	else
		log_error("/proc shows another pid namespace than that of ptmem, which needs its "
			  "own: mount -t proc proc /proc; unshare has --mount-proc");
	return false;
}

/* The ids of processes that have this name, as "12,34"; the caller frees it. */
static char *find_named(const char *name, unsigned *count_out)
{
	char *ids = NULL;
	size_t size;
	FILE *text = open_memstream(&ids, &size);
	DIR *dir = opendir("/proc");
	unsigned count = 0;

	CHECK(text);
	for (const struct dirent *e; dir && (e = readdir(dir)) && count < OPTIONS_MAX_PIDS;) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !process_matches(pid, &name, 1))
			continue;
		fprintf(text, "%s%d", count++ ? "," : "", (int)pid);
	}
	if (dir)
		closedir(dir);
	CHECK(fclose(text) == 0);
	*count_out = count;
	return ids;
}

void explain_pid(const char *source, const char *name)
{
	unsigned count;
	_cleanup_free_ char *ids = find_named(name, &count);

	if (count == 1)
		log_error("%s-p takes a process id: that of %s is %s, ptmem -p %s", source, name,
			  ids, ids);
	else if (count > 1)
		log_error("%s-p takes process ids: %u processes are called %s, ptmem -p %s; "
			  "--follow=%s also takes those that start later", source, count, name,
			  ids, name);
	else
		log_error("%s-p takes a process id, and no process is called %s; --follow=%s "
			  "waits for one", source, name, name);
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count - MIN(count, 3u); /* two names that are no descriptors, and its own */
}

bool explain_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= 1024)
		return true;
	unsigned needed = MAX(count_descriptors(), 3u) + OWN_DESCRIPTORS;

	if (limit.rlim_max >= needed)
		return true;
	log_error("a process may open %llu files here, and ptmem needs %u to keep its results: "
		  "raise the hard limit (ulimit -n %u)", (unsigned long long)limit.rlim_max,
		  needed, needed);
	return false;
}

void explain_faults(int rc)
{
	struct line level = paranoid_level();
	if (rc == -EACCES || rc == -EPERM)
		log_error("page faults may not be traced: kernel.perf_event_paranoid is %s; run "
			  "ptmem as root, or allow it with: sysctl kernel.perf_event_paranoid=2",
			  or_unknown(&level));
	else if (rc == -EMFILE)
		log_error("page faults cannot be traced: too many threads for the limit of open "
			  "files (ulimit -n)");
	else
		log_error("page faults cannot be traced: perf_event_open: %s", strerror(-rc));
}

void explain_instructions(int rc)
{
	struct line level = paranoid_level();
	if (rc == -EACCES || rc == -EPERM)
		log_error("instructions may not be counted: kernel.perf_event_paranoid is %s; use "
			  "--time-unit=ms or --time-unit=B, or run ptmem as root",
			  or_unknown(&level));
	else
		log_error("this machine counts no instructions (perf_event_open: %s): use "
			  "--time-unit=ms or --time-unit=B", strerror(-rc));
}

static void explain_tracer(pid_t pid, long tracer)
{
	struct line name = first_line(proc_open((pid_t)tracer, "comm"));
	log_error("process %d is already traced, by process %ld (%s)", pid, tracer,
		  or_unknown(&name));
}

/* Whether the program in file @path is one in Go. */
static bool is_go(const char *path)
{
	struct elf_file *file;

	if (elf_file_open(NULL, path, NULL, &file) != 0)
		return false;
	bool found = go_table_of(file) != NULL;

	elf_file_release(file);
	return found;
}

static void explain_no_probes(pid_t pid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%d/exe", (int)pid);

	if (is_go(path))
		log_error("process %d: no malloc or other allocation function found: it is a Go "
			  "program; ptmem --inspect -p %d shows the heap profile that it keeps",
			  (int)pid, (int)pid);
	else
		log_error("process %d: no malloc or other allocation function found; a stripped "
			  "static program? " NO_PROBES_HINT, (int)pid);
}

void explain_attach(pid_t pid, int rc, enum attach_problem problem, long detail)
{
	switch (problem) {
	case ATTACH_NO_PROCESS:
		log_error("process %d: no such process", pid);
		break;
	case ATTACH_ZOMBIE:
		log_error("process %d has ended; only its exit status is left (a zombie)", pid);
		break;
	case ATTACH_TRACED:
		explain_tracer(pid, detail);
		break;
	case ATTACH_PERMISSION:
		explain_permission(pid);
		break;
	case ATTACH_32BIT:
		log_error("process %d is a 32-bit program (or one of another machine): not "
			  "supported", pid);
		break;
	case ATTACH_SELF:
		log_error("process %d is ptmem itself", pid);
		break;
	case ATTACH_KERNEL_THREAD:
		log_error("process %d is a kernel thread: it has no memory of its own", pid);
		break;
	case ATTACH_STUCK:
		log_error("process %d cannot be stopped: its thread %ld waits in the kernel, for a "
			  "child in vfork or for a device; try again later", pid, detail);
		break;
	case ATTACH_EXECUTES:
		log_error("process %d cannot be attached to: it keeps executing programs, and none "
			  "ran long enough; try again", pid);
		break;
	case ATTACH_NO_HANDLER:
		log_error("process %d cannot be attached to: the signal handler that would keep it "
			  "alive if ptmem were killed cannot be installed: %s", pid, strerror(-rc));
		break;
	case ATTACH_NO_FAULTS:
		explain_faults(rc);
		break;
	case ATTACH_NO_PROBES:
		explain_no_probes(pid);
		break;
	default:
		log_error("process %d: cannot attach: %s", pid, strerror(-rc));
		break;
	}
}

/* What traces ptmem, and with it normally what it starts; 0: nothing. */
static pid_t own_tracer(void)
{
	struct proc_status st;
	return proc_status_read(getpid(), &st) == 0 ? st.tracer : 0;
}

static void explain_own_tracer(const char *name, pid_t tracer)
{
	struct line its = first_line(proc_open(tracer, "comm"));
	log_error("%s may not be traced: ptmem and what it starts are traced already, by process "
		  "%d (%s)", name, (int)tracer, or_unknown(&its));
}

/* The file that execve found; NULL = none. The caller frees it. */
static char *find_started(const char *name)
{
	struct stat st;

	if (!strchr(name, '/'))
		return program_find(name);
	return stat(name, &st) == 0 && S_ISREG(st.st_mode) ? xstrdup(name) : NULL;
}

/* The first line of script @path without "#!" and arguments; "" = it is no script. */
static struct line script_interpreter(const char *path, bool *has_cr_out)
{
	struct line line = first_line(fopen(path, "re"));
	const char *name = line.text + 2 + strspn(line.text + 2, " \t");

	*has_cr_out = strchr(line.text, '\r');
	if (strncmp(line.text, "#!", 2) != 0)
		return (struct line){""};
	memmove(line.text, name, strlen(name) + 1);
	line.text[strcspn(line.text, " \t\r")] = '\0';
	return line;
}

/* execve found no such file: the program, or what is to run it. */
static void explain_absence(const char *name)
{
	_cleanup_free_ char *path = find_started(name);
	bool has_cr = false, is_bare = *name && !strchr(name, '/');
	struct line script = path ? script_interpreter(path, &has_cr) : (struct line){""};
	_cleanup_free_ char *loader = path ? elf_read_interpreter(path) : NULL;
	struct stat st;

	if (*script.text && has_cr)
		log_error("%s: its first line ends in a carriage return, so that %s is not found; "
			  "sed -i 's/\\r$//' %s removes them", name, script.text, path);
	else if (*script.text)
		log_error("%s: its first line names %s, which does not exist: install it, or "
			  "correct the line", name, script.text);
	else if (loader)
		log_error("%s: it needs %s to be loaded, which does not exist: a program for "
			  "another C library or machine?", name, loader);
	else if (is_bare && stat(name, &st) == 0 && S_ISREG(st.st_mode))
		log_error("%s: no such program in PATH: did you mean ./%s?", name, name);
	else if (is_bare)
		log_error("%s: no such program in PATH", name);
	else
		log_error("%s: no such program", *name ? name : "''");
}

/* A file without the permission to execute it: one may have mistaken it for a program. */
static void explain_not_executable(const char *name)
{
	struct line line = first_line(fopen(name, "re"));

	if (!strncmp(line.text, "#!", 2) || !strncmp(line.text, "\177ELF", 4))
		log_error("%s: not executable (chmod +x makes it so)", name);
	else
		log_error("%s: not executable, and neither a program nor a script with #!; "
			  "ptmem takes a program and its arguments", name);
}

void explain_start(const char *name, int rc)
{
	struct stat st;
	bool is_there = rc == -EACCES && stat(name, &st) == 0;
	pid_t tracer = rc == -EPERM ? own_tracer() : 0;
	if ((rc == -EPERM || rc == -ENOSYS) && !ptrace_is_allowed())
		log_error("%s may not be traced: " NO_PTRACE, name);
	else if (tracer)
		explain_own_tracer(name, tracer);
	else if (rc == -ENOENT)
		explain_absence(name);
	else if (is_there && S_ISDIR(st.st_mode))
		log_error("%s: a directory, not a program", name);
	else if (is_there && S_ISREG(st.st_mode) && !(st.st_mode & 0111))
		explain_not_executable(name);
	else
		log_error("%s: %s", name, strerror(-rc));
}

void explain_refusal(const char *name, enum attach_problem problem)
{
	if (problem == ATTACH_32BIT)
		log_error("%s: a 32-bit program (or one of another machine): not supported", name);
	else
		log_error("%s: no malloc or other allocation function found in it, and it loads no "
			  "library; if it only executes another program, \"ptmem env %s ...\" "
			  "profiles that one; otherwise: %s", name, name,
			  is_go(name) ? "it is a Go program: --inspect-at-exit shows the heap "
					"profile that it keeps" :
					"a stripped static program (keep its symbols)? "
					NO_PROBES_HINT);
}
