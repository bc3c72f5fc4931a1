/*
 * ptmem's side of the guard: the guardian's process, and the handler in the target. guard.h has
 * the picture, guard_record.c what the guardian works from.
 */
#include "target/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "target/ptrace.h"

#define GUARDIAN_NAME "heap-guardian"
#define SIGTRAP_BIT (1ull << (SIGTRAP - 1))

bool guard_is_guardian(pid_t pid)
{
	char name[sizeof(GUARDIAN_NAME) + 1] = "";
	_cleanup_fclose_ FILE *file = proc_open(pid, "comm");
	return file && fgets(name, sizeof(name), file) &&
	       strcmp(name, GUARDIAN_NAME "\n") == 0 && !proc_is_dead(pid);
}

/* -- the guardian process -- */

/* ps shall not show it as ptmem: whoever kills ptmem by name would kill it, too. */
static void rename_process(void)
{
	char line[4096];
	_cleanup_close_ int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof(line));
	if (n > (ssize_t)sizeof(GUARDIAN_NAME)) {
		memset(program_invocation_name, 0,
		       (size_t)n - 1); /* the arguments stand in a row */
		memcpy(program_invocation_name, GUARDIAN_NAME, sizeof(GUARDIAN_NAME));
	}
	prctl(PR_SET_NAME, GUARDIAN_NAME);
}

/* Nobody shall wait for its end of a pipe, or find a folder in use, because of it. */
static void leave_surroundings(int fd)
{
	static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP,  SIGTSTP, SIGTTIN,
				      SIGTTOU, SIGPIPE, SIGALRM, SIGUSR1, SIGUSR2};
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	dup2(fd, STDIN_FILENO);
	close_range(1, ~0u, 0);
	int null = open("/dev/null", O_RDWR); /* is 1 */
	dup2(null, STDERR_FILENO);
	if (chdir("/") != 0)
		return;
}

ATTR_NORETURN static void run_guardian(struct guard_record *records, int fd)
{
	char c = 0;
	ssize_t n;
	setsid();
	leave_surroundings(fd);
	rename_process();
	pid_t pid = getpid();
	if (write(STDIN_FILENO, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	while ((n = read(STDIN_FILENO, &c, 1)) < 0 && errno == EINTR)
		;
	if (n <= 0)
		guardian_clean(records);
	_exit(0);
}

/* Not our child: it would be found by every wait. */
static int fork_orphan(struct guard_record *records, const int pair[2])
{
	pid_t pid = fork();
	if (pid == 0) {
		close(pair[0]);
		pid = fork();
		if (pid == 0)
			run_guardian(records, pair[1]);
		_exit(pid < 0);
	}
	int status = -1;
	if (pid > 0)
		waitpid(pid, &status, 0);
	return pid > 0 && status == 0 ? 0 : -EAGAIN;
}

/* Who it is, as it says itself: its parent has ended. */
static int read_pid(int fd, pid_t *pid_out)
{
	ssize_t n;
	while ((n = read(fd, pid_out, sizeof(*pid_out))) < 0 && errno == EINTR)
		;
	return n == sizeof(*pid_out) ? 0 : -ECHILD;
}

int guard_start(struct target *t)
{
	struct guard *g = &t->guard;
	int pair[2];
	pid_t pid = 0;
	if (g->record)
		return 0;
	struct guard_record *records = guard_records_new();
	if (!records)
		return -ENOMEM;
	int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 ? 0 : -errno;
	if (rc == 0) {
		rc = fork_orphan(records, pair);
		close(pair[1]);
		if (rc == 0)
			rc = read_pid(pair[0], &pid);
		if (rc != 0)
			close(pair[0]);
	}
	if (rc != 0) {
		guard_records_free(records);
		log_warn("no guardian process could be started: %s", strerror(-rc));
		return rc;
	}
	*g = (struct guard){records, pair[0], pid};
	return 0;
}

void guard_stop(struct target *t)
{
	struct guard *g = &t->guard;
	char c = 'q';
	if (!g->record)
		return;
	if (send(g->fd, &c, 1, MSG_NOSIGNAL) == 1) {
		while (read(g->fd, &c, 1) < 0 && errno == EINTR)
			;
	}
	close(g->fd);
	guard_records_free(g->record);
	*g = (struct guard){0};
}

/* -- the handler -- */

/* Whether SIGTRAP of @pid has the default action. */
static bool has_default_action(pid_t pid)
{
	struct proc_status st;
	return proc_status_read(pid, &st) == 0 && !((st.ignored | st.caught) & SIGTRAP_BIT);
}

static int set_action(struct target *t, struct thread *th, taddr_t action, taddr_t old)
{
	const uint64_t args[6] = {SIGTRAP, action, old, 8};
	int64_t result = -EIO;
	int rc = inject_syscall(t, th, SYS_rt_sigaction, args, &result);
	return rc != 0 ? rc : (int)result;
}

static int install_page(struct target *t, struct space *s, struct thread *th)
{
	const uint64_t args[6] = {0,
				  GUARD_SIZE,
				  PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
				  (uint64_t)-1,
				  0};
	uint8_t page[GUARD_DATA];
	int64_t at = -EIO;
	int rc = inject_mmap(t, th, args, &at);
	if (rc == 0 && at < 0)
		rc = (int)at;
	if (rc != 0)
		return rc;
	*vec_add(&s->areas) = (struct stub_area){
		.start = (taddr_t)at, .size = GUARD_SIZE, .used = GUARD_SIZE, .is_guard = true};
	arch_guard_page((taddr_t)at, page);
	rc = space_write(s, (taddr_t)at, page, sizeof(page));
	if (rc != 0)
		return rc;
	guard_note_page(t, s, (taddr_t)at);
	return set_action(t, th, (taddr_t)at + GUARD_ACTION, 0);
}

void guard_install(struct target *t, struct space *s, struct thread *th)
{
	if (!s->guard || s->guard->page || !th)
		return;
	if (!has_default_action(s->reader))
		log_verbose("process %d has its own handler of SIGTRAP or ignores it: if ptmem is "
			    "killed, a breakpoint "
			    "may do harm before it is taken out",
			    s->reader);
	else if (!syscalls_may_inject(t, th->tid))
		log_verbose("process %d has a seccomp filter: no handler of SIGTRAP is put in; if "
			    "ptmem is killed, a "
			    "breakpoint may end it",
			    s->reader);
	else {
		int rc = install_page(t, s, th);
		if (rc != 0)
			log_verbose("process %d gets no handler of SIGTRAP: %s", s->reader,
				    strerror(-rc));
	}
}

#define SCRATCH_BELOW 1024u /* under the stack pointer and its red zone */

/* Whether the process of @th still has our handler: it may have set another meanwhile. */
static bool is_ours(struct target *t, struct thread *th, taddr_t handler)
{
	struct arch_regs regs;
	uint64_t action[GUARD_ACTION_SIZE / 8] = {0};
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return false;
	taddr_t scratch = ROUND_DOWN(regs.word[t->arch->sp] - SCRATCH_BELOW, (taddr_t)16);
	int rc = set_action(t, th, 0, scratch);
	if (rc == -EFAULT)
		return !has_default_action(th->process->pid);
	return rc == 0 && space_read(th->process->space, scratch, action, sizeof(action)) == 0 &&
	       action[0] == handler;
}

static struct thread *pick_thread(struct target *t, const struct process *p)
{
	for (size_t i = 0; i < t->threads.capacity; i++) {
		struct thread *th = t->threads.data[i];
		if (th && th->process == p && !th->is_exiting && th->is_held &&
		    !th->is_in_vfork)
			return th;
	}
	return NULL;
}

void guard_remove(struct target *t, struct space *s)
{
	struct guard_record *r = s->guard;
	if (!r || !r->has_handler)
		return;
	for (size_t i = 0; i < t->processes.count; i++) {
		struct process *p = t->processes.data[i];
		struct thread *th = p->space == s ? pick_thread(t, p) : NULL;
		if (th && is_ours(t, th, r->page))
			set_action(t, th, r->page + GUARD_DEFAULT, 0);
	}
	guard_note_handler_gone(s);
}
