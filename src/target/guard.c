/*
 * ptmem's side of the guard: the handler in the target, and the record that the
 * guardian works from. guard.h has the picture.
 */
#include "target/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
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

/* Keeps the compiler from moving a record's stores across each other; a dying process's own are seen in order. */
#define ORDER() __atomic_signal_fence(__ATOMIC_SEQ_CST)

const char guard_copy_magic[8] = "ptmem\02\0";

bool guard_is_guardian(pid_t pid)
{
	char name[sizeof(GUARDIAN_NAME) + 1] = "";
	_cleanup_fclose_ FILE *file = proc_open(pid, "comm");
	return file && fgets(name, sizeof(name), file) &&
	       strcmp(name, GUARDIAN_NAME "\n") == 0 && !proc_is_dead(pid);
}

struct guard_record *guard_records_new(void)
{
	void *p = mmap(NULL, sizeof(struct guard_record) * GUARD_SPACES, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void guard_records_free(struct guard_record *records)
{
	munmap(records, sizeof(*records) * GUARD_SPACES);
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

/* -- records -- */

static struct guard_record *free_record(struct target *t)
{
	for (size_t i = 0; t->guard.record && i < GUARD_SPACES; i++) {
		if (t->guard.record[i].pid == 0)
			return &t->guard.record[i];
	}
	return NULL;
}

/* Writes what @part of @s's record holds into the copy in its page, if it has one. */
static void copy_part(const struct space *s, const void *part, size_t size)
{
	const struct guard_record *r = s->guard;
	size_t offset = (size_t)((const char *)part - (const char *)r);
	if (r->page)
		space_write(s, r->page + GUARD_COPY + sizeof(struct guard_copy) + offset, part, size);
}

/* All of it but the unused ends of its tables, for a page that has none yet; the magic last. */
static void copy_record(const struct target *t, const struct space *s)
{
	const struct guard_record *r = s->guard;
	struct guard_copy head = {.head_size = sizeof(head),
				  .record_size = sizeof(*r),
				  .guardian = t->guard.pid};
	copy_part(s, r, offsetof(struct guard_record, area) + r->area_count * sizeof(r->area[0]));
	copy_part(s, r->trap, r->trap_count * sizeof(r->trap[0]));
	memcpy(head.magic, guard_copy_magic, sizeof(head.magic));
	space_write(s, r->page + GUARD_COPY, &head, sizeof(head));
}

void guard_space(struct target *t, struct space *s)
{
	struct guard_record *r = free_record(t);
	if (!r || s->guard)
		return;
	memset(r, 0, offsetof(struct guard_record, area));
	s->guard = r;
	ORDER();
	r->pid = s->reader;
}

void guard_space_forked(struct target *t, const struct space *parent, struct space *child)
{
	struct guard_record *r = parent->guard ? free_record(t) : NULL;
	if (!r)
		return;
	memcpy(r, parent->guard, sizeof(*r));
	r->shared = 0; /* its pads are turned into breakpoints */
	r->masked_thread = 0;
	child->guard = r;
	ORDER();
	r->pid = child->reader;
	if (r->page)
		copy_record(t, child);
}

void guard_space_gone(struct space *s)
{
	if (s->guard)
		s->guard->pid = 0;
	s->guard = NULL;
}

/* -- what was changed -- */

static struct guard_trap *find_trap(struct guard_record *r, taddr_t addr)
{
	for (uint32_t i = 0; i < r->trap_count; i++) {
		if (r->trap[i].addr == addr)
			return &r->trap[i];
	}
	return NULL;
}

/* The handler's table: an entry is whole before it counts. */
static void write_handler_trap(struct space *s, uint32_t index, taddr_t addr, taddr_t resume)
{
	const uint64_t entry[2] = {addr, resume}, count = index + 1;
	taddr_t data = s->guard->page + GUARD_DATA;
	space_write(s, data + offsetof(struct guard_data, trap) + index * sizeof(entry), entry,
		    sizeof(entry));
	if (s->guard->trap_count <= index)
		space_write(s, data + offsetof(struct guard_data, trap_count), &count,
			    sizeof(count));
}

void guard_note_trap(struct space *s, const struct arch *arch, const struct trap *trap)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	guard_note_areas(s);
	struct guard_trap *g = find_trap(r, trap->addr);
	uint32_t index = g ? (uint32_t)(g - r->trap) : r->trap_count;
	if (index == GUARD_RECORD_TRAPS)
		return;
	g = &r->trap[index];
	bool is_jump = trap->kind == TRAP_ENTRY || trap->kind == TRAP_SYSCALL ||
		       trap->kind == TRAP_PAD_EXIT;
	taddr_t resume = is_jump ? trap->stub.jump : trap->addr + arch->trap_pc_offset;
	struct guard_trap now = {trap->addr, resume, {0}, trap->patch_size, trap->kind};
	memcpy(now.original, trap->original, sizeof(now.original));
	*g = now;
	ORDER();
	if (r->page)
		write_handler_trap(s, index, trap->addr, resume);
	copy_part(s, g, sizeof(*g));
	if (index == r->trap_count) {
		r->trap_count++;
		copy_part(s, &r->trap_count, sizeof(r->trap_count));
	}
}

void guard_forget_trap(struct space *s, taddr_t addr)
{
	struct guard_trap *g = s->guard ? find_trap(s->guard, addr) : NULL;
	if (!g)
		return;
	g->patch_size = 0;
	copy_part(s, &g->patch_size, sizeof(g->patch_size));
}

/* The handler's ranges, where a pc that was moved already may stand. */
static void write_handler_range(const struct space *s, uint32_t index, const struct stub_area *a)
{
	const uint64_t range[2] = {a->start, a->start + a->size}, count = index + 1;
	taddr_t data = s->guard->page + GUARD_DATA;
	space_write(s, data + offsetof(struct guard_data, range) + index * sizeof(range), range,
		    sizeof(range));
	space_write(s, data + offsetof(struct guard_data, range_count), &count, sizeof(count));
}

void guard_note_areas(struct space *s)
{
	struct guard_record *r = s->guard;
	if (!r || r->area_count >= s->areas.count)
		return;
	while (r->area_count < s->areas.count && r->area_count < GUARD_RECORD_AREAS) {
		const struct stub_area *a = &s->areas.data[r->area_count];
		struct guard_area *g = &r->area[r->area_count];
		*g = (struct guard_area){a->start, a->size, a->is_pads, a->is_slack};
		ORDER();
		copy_part(s, g, sizeof(*g));
		r->area_count++;
		copy_part(s, &r->area_count, sizeof(r->area_count));
		if (r->page && r->area_count <= GUARD_RANGES)
			write_handler_range(s, r->area_count - 1, a);
	}
}

void guard_forget_area(struct space *s, taddr_t start)
{
	struct guard_record *r = s->guard;
	for (uint32_t i = 0; r && i < r->area_count; i++) {
		if (r->area[i].start == start)
			r->area[i].size = 0;
	}
	if (r && r->shared == start)
		r->shared = 0;
	if (r)
		copy_part(s, r, offsetof(struct guard_record, trap));
	if (r && r->page == start)
		r->page = 0; /* no copy any more */
}

void guard_note_shared(struct space *s, taddr_t start, uint64_t size)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	r->shared_size = size;
	ORDER();
	r->shared = start;
	copy_part(s, r, offsetof(struct guard_record, area));
}

taddr_t guard_resume_address(const struct space *s, taddr_t trap)
{
	struct guard_trap *g = s->guard ? find_trap(s->guard, trap) : NULL;
	return g ? g->resume : 0;
}

bool guard_has_moved(const struct space *s, taddr_t pc)
{
	const struct guard_record *r = s->guard;
	for (uint32_t i = 0; r && i < r->trap_count; i++) {
		if (r->trap[i].resume == pc)
			return true;
	}
	for (uint32_t i = 0; r && i < r->area_count; i++) {
		if (pc - r->area[i].start < r->area[i].size)
			return true;
	}
	return false;
}

void guard_note_mask(struct space *s, pid_t tid, uint64_t mask)
{
	struct guard_record *r = s->guard;
	if (!r)
		return;
	r->masked_thread = 0;
	ORDER();
	r->mask = mask;
	ORDER();
	r->masked_thread = tid;
	copy_part(s, &r->masked_thread, offsetof(struct guard_record, trap_count) -
					       offsetof(struct guard_record, masked_thread));
}

/* -- injection -- */

static bool is_zero(const uint8_t *p, size_t size)
{
	while (size > 0 && *p == 0)
		p++, size--;
	return size == 0;
}

/* Nobody uses the zeros that fill an object's last page of text; the vdso's first: no file differs then. */
int guard_find_injection(struct space *s, taddr_t *at_out)
{
	struct guard_record *r = s->guard;
	uint8_t tail[2 * INJECTION_SIZE];
	if (!r)
		return -ENOSPC;
	for (int pass = 0; pass < 2 && !r->injection; pass++) {
		for (size_t i = 0; i < s->modules.count && !r->injection; i++) {
			const struct module *m = s->modules.data[i];
			if (m->is_vdso != (pass == 0) ||
			    space_read(s, m->end - sizeof(tail), tail, sizeof(tail)) != 0 ||
			    !is_zero(tail, sizeof(tail)))
				continue;
			memset(r->injection_saved, 0, sizeof(r->injection_saved));
			ORDER();
			r->injection = m->end - INJECTION_SIZE;
			copy_part(s, &r->injection, sizeof(r->injection));
		}
	}
	*at_out = r->injection;
	return r->injection ? 0 : -ENOSPC;
}

bool guard_has_injection(const struct space *s)
{
	return s->guard && s->guard->injection;
}

void guard_clear_injection(struct space *s)
{
	struct guard_record *r = s->guard;
	if (!r || !r->injection)
		return;
	if (space_write(s, r->injection, r->injection_saved, sizeof(r->injection_saved)) == 0) {
		r->injection = 0;
		copy_part(s, &r->injection, sizeof(r->injection));
	}
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
	s->guard->page = (taddr_t)at;
	guard_note_areas(s);
	s->guard->has_handler = true;
	copy_record(t, s);
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
	r->has_handler = false;
	copy_part(s, &r->has_handler, sizeof(r->has_handler));
}
