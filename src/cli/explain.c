/* Finds the reason for a failure: another tracer, another user, a sysctl. */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"

#define NO_PROBES_HINT "--trace=brk,mmap profiles its system calls"

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

static void explain_permission(pid_t pid, long uid)
{
	struct line scope = first_line(fopen("/proc/sys/kernel/yama/ptrace_scope", "re"));
	if (uid >= 0 && uid != (long)geteuid() && geteuid() != 0)
		log_error("process %d belongs to user %ld: run ptmem as that user or as root", pid,
			  uid);
	else if (geteuid() == 0)
		log_error("process %d may not be traced, not even by root: CAP_SYS_PTRACE is "
			  "missing, the process is outside of this container, or a security "
			  "module forbids it", pid);
	else if (strcmp(scope.text, "1") == 0 || strcmp(scope.text, "2") == 0)
		log_error("process %d may not be traced: kernel.yama.ptrace_scope is %s; run ptmem "
			  "as root, or allow it with: sysctl kernel.yama.ptrace_scope=0",
			  pid, scope.text);
	else if (strcmp(scope.text, "3") == 0)
		log_error("process %d may not be traced: kernel.yama.ptrace_scope is 3, which "
			  "forbids all attaching until the next boot", pid);
	else
		log_error("process %d may not be traced: it changed its user or forbids it "
			  "(PR_SET_DUMPABLE); run ptmem as root with CAP_SYS_PTRACE", pid);
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

void explain_attach(pid_t pid, int rc, enum attach_problem problem, long detail)
{
	switch (problem) {
	case ATTACH_NO_PROCESS:
		log_error("process %d: no such process", pid);
		break;
	case ATTACH_ZOMBIE:
		log_error("process %d has ended; only its exit status is left (a zombie)", pid);
		break;
	case ATTACH_DEAD_LEADER:
		log_error("process %d cannot be attached to: its first thread has ended, only "
			  "others run", pid);
		break;
	case ATTACH_TRACED:
		explain_tracer(pid, detail);
		break;
	case ATTACH_PERMISSION:
		explain_permission(pid, detail);
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
		log_error("process %d: no malloc or other allocation function found; a stripped "
			  "static program, or Go? " NO_PROBES_HINT, pid);
		break;
	default:
		log_error("process %d: cannot attach: %s", pid, strerror(-rc));
		break;
	}
}

void explain_start(const char *name, int rc)
{
	struct stat st;
	bool is_there = rc == -EACCES && stat(name, &st) == 0;
	if (rc == -ENOENT)
		log_error("%s: no such program", *name ? name : "''");
	else if (is_there && S_ISDIR(st.st_mode))
		log_error("%s: a directory, not a program", name);
	else if (is_there && !(st.st_mode & 0111))
		log_error("%s: not executable (chmod +x makes it so)", name);
	else
		log_error("%s: %s", name, strerror(-rc));
}

void explain_refusal(const char *name, enum attach_problem problem)
{
	if (problem == ATTACH_32BIT)
		log_error("%s: a 32-bit program (or one of another machine): not supported", name);
	else
		log_error("%s: no malloc or other allocation function found in it, and it loads no "
			  "library; a stripped static program (keep its symbols), or Go? "
			  NO_PROBES_HINT, name);
}
