/*
 * From stops at system calls to HEAP_MAP and HEAP_UNMAP. See syscalls.h.
 *
 *	entry   what the call will remove is stored in the thread
 *	exit    what was unmapped and mapped is reported to the sink
 *
 * Exits are not seen in the kernel's order: another thread may get a range before the end of the
 * munmap that freed it is seen. So an added range is compared with what threads inside a call are
 * about to remove, and overlaps are reported first.
 *
 * The main thread's stack grows without a call: it is measured when its stack pointer is below the
 * known range, and at the end.
 */
#include "tracee/syscalls/syscalls.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/maps.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/heap_event.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"
#include "tracee/syscalls/mapping.h"
#include "tracee/syscalls/syscall_sites.h"

/* -- the filter -- */

/* Whether executing @program gives more privileges than its caller has. */
static bool gives_rights(const char *program)
{
	const char *path = getenv("PATH");
	char name[4096];
	struct stat st;
	for (const char *at = strchr(program, '/') || !path ? "" : path; at;) {
		size_t n = strcspn(at, ":");
		snprintf(name, sizeof(name), "%.*s%s%s", (int)n, at, n ? "/" : "", program);
		if (stat(name, &st) == 0 && S_ISREG(st.st_mode) && access(name, X_OK) == 0)
			return st.st_mode & (S_ISUID | S_ISGID) ||
			       getxattr(name, "security.capability", NULL, 0) > 0;
		at = at[n] ? at + n + 1 : NULL;
	}
	return false;
}

/*
 * Kernels before 5.16 treat a filter as a request to disable speculation, which slows down the
 * whole program; SPEC_ALLOW (4.17) overrides that.
 */
static bool set_filter(const struct sock_fprog *program)
{
	const unsigned op = SECCOMP_SET_MODE_FILTER, flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	return syscall(SYS_seccomp, op, flags, program) == 0 ||
	       (errno == EINVAL && syscall(SYS_seccomp, op, 0, program) == 0);
}

static bool is_any_watched(const struct target *t)
{
	return t->options.watch.brk || t->options.watch.mappings;
}

unsigned long syscalls_seize_options(const struct target *t)
{
	return is_any_watched(t) ? PTRACE_O_TRACESECCOMP : 0;
}

#define FILTER_MARK 0x706du /* tells our filter from those of the program */

void syscalls_install_filter(const struct target *t, const char *program)
{
	size_t count, n = 0, k = 0;
	if (!is_any_watched(t))
		return;
	const long *number = mapping_watched(&count);
	struct sock_filter code[32];
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] =
		(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, t->arch->audit_arch, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++)
		k += mapping_is_wanted(&t->options, number[i]);
	for (size_t i = 0; i < count; i++) {
		if (mapping_is_wanted(&t->options, number[i]))
			code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								 (uint32_t)number[i], (uint8_t)k--,
								 0);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
						 SECCOMP_RET_TRACE | FILTER_MARK);
	const struct sock_fprog filter = {.len = (unsigned short)n, .filter = code};
	if (set_filter(&filter) || errno != EACCES || gives_rights(program))
		return;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		set_filter(&filter);
}

void syscalls_detect_mode(struct target *t, pid_t pid)
{
	if (!is_any_watched(t))
		return;
	int own = t->inherited.count;
	bool has_one = own >= 0 && seccomp_count_filters(pid) == own + 1;
	t->syscalls.way = has_one ? SYSCALLS_FILTER : SYSCALLS_SITES;
	if (!has_one)
		log_verbose("no seccomp filter for process %d: breakpoints at its system calls",
			    pid);
}

bool syscalls_is_watched(const struct target *t, const struct thread *th)
{
	const struct syscall_state *st = th->syscall;
	if (st && (st->awaits_exit || st->is_rewinding || st->site))
		return true;
	return t->syscalls.way == SYSCALLS_SITES && th->process->space->syscalls.stops_at_all &&
	       th->process->space->watch.is_profiled;
}

void syscalls_forget(struct thread *th)
{
	*syscall_state(th) = (struct syscall_state){.is_inside = syscall_state(th)->is_inside};
}

/* -- the state of a space -- */

static taddr_t read_start_brk(pid_t pid)
{
	struct proc_stat st;
	return proc_stat_read(pid, &st) == 0 ? st.start_brk : 0;
}

/* The mapping called @path, or the one at @addr. */
static struct mapping_range look_up(const struct address_space *s, const char *path, taddr_t addr)
{
	struct mapping_range found = {0};
	struct maps maps;
	if (maps_read(s->processes.reader, &maps) != 0)
		return found;
	for (size_t i = 0; i < maps.list.count; i++) {
		const struct map *m = &maps.list.data[i];
		if (path ? strcmp(m->path, path) == 0 : addr >= m->start && addr < m->end)
			found = (struct mapping_range){m->start, m->end};
	}
	maps_deinit(&maps);
	return found;
}

static taddr_t find_break(struct target *t, struct address_space *s, struct thread *th)
{
	const uint64_t none[6] = {0};
	int64_t result = 0;
	if (th && seccomp_allows_injection(t, th->tid, NULL) &&
	    inject_syscall(t, th, SYS_brk, none, &result) == 0 && result > 0)
		return (taddr_t)result;
	taddr_t start = read_start_brk(s->processes.reader), end = look_up(s, "[heap]", 0).end;
	return MAX(start, end);
}

void syscalls_start(struct target *t, struct address_space *s, struct thread *th)
{
	if (t->options.watch.brk)
		s->syscalls.program_break = find_break(t, s, th);
	if (t->options.watch.mappings)
		s->syscalls.stack_start = look_up(s, "[stack]", 0).start;
}

/* -- events -- */

/* A range that was mapped, or unmapped. */
struct range_event {
	enum heap_event_kind kind; /* HEAP_MAP or HEAP_UNMAP */
	struct mapping_range range;
	enum heap_function function;
};

/* @regs: at the stop; NULL = no thread's registers belong to the event. */
static void emit(struct target *t, struct thread *th, const struct arch_regs *regs,
		 const struct range_event *what)
{
	struct mapping_range r = what->range;
	struct address_space *s = th->process->space;
	struct stack_view view;
	if (mapping_is_empty(r) || !s->sink.user || t->is_abandoned)
		return;
	struct heap_event ev = {
		.time_ns = t->now_ns, .thread = (uint32_t)th->tid, .kind = (uint8_t)what->kind,
		.function = (uint8_t)what->function, .addr = r.start, .size = r.end - r.start,
	};
	if (regs && t->options.events.stack_pointers)
		ev.sp = regs->word[t->arch->sp];
	if ((what->kind == HEAP_MAP || t->options.events.free_stacks) && regs) {
		stack_window_at_stop(t, th, regs, &view);
		ev.stack = &view;
		if (what->kind == HEAP_MAP && what->function == FUNCTION_MMAP &&
		    syscall_state(th)->call.number == SYS_mmap) {
			ev.map_flags = (uint32_t)syscall_state(th)->call.arg[3];
			ev.map_fd = ev.map_flags & MAP_ANONYMOUS
					    ? -1
					    : (int)syscall_state(th)->call.arg[4];
		}
	}
	t->sink.event(t->sink.ctx, s, &ev);
}

static void check_stack(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	struct mapping_range now = look_up(s, "[stack]", 0);
	struct mapping_range grown = {now.start, s->syscalls.stack_start};
	if (s->syscalls.stack_start == 0 || now.start == 0)
		return;
	s->syscalls.stack_start = now.start;
	emit(t, th, NULL, &(struct range_event){HEAP_MAP, grown, FUNCTION_NONE});
}

/* Other threads inside a call that removes memory that @come uses: their call was first. */
static void flush_others(struct target *t, struct thread *th, struct mapping_range come)
{
	struct thread *other;
	for_each_thread_in(t, th->process->space, other) {
		if (other == th || !other->syscall || !other->syscall->has_call ||
		    other->syscall->is_flushed)
			continue;
		struct mapping_range removed = mapping_removed(&other->syscall->call);
		if (mapping_is_empty(removed) || !mapping_overlaps(removed, come))
			continue;
		other->syscall->is_flushed = true;
		if (other->syscall->call.number == SYS_brk)
			th->process->space->syscalls.program_break = removed.start;
		emit(t, other, NULL, &(struct range_event){HEAP_UNMAP, removed, FUNCTION_MUNMAP});
	}
}

/* @r may have contained objects: without a stop in the loader this is the only notice. */
static void check_modules(struct target *t, struct thread *th, struct mapping_range r)
{
	struct address_space *s = th->process->space;
	for (size_t i = 0; i < s->modules.count && t->options.probes.none; i++) {
		const struct module *m = s->modules.data[i];
		if (r.start < m->end && m->start < r.end) {
			t->hooks.update_modules(t, s, th);
			return;
		}
	}
}

static void apply(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct address_space *s = th->process->space;
	struct mapping_call *c = &syscall_state(th)->call;
	int64_t result = (int64_t)regs->word[t->arch->syscall_ret];
	if (c->number == SYS_brk)
		c->program_break = s->syscalls.program_break;
	else if (c->number == SYS_shmat || c->number == SYS_io_setup) {
		taddr_t at = (taddr_t)result;
		if (c->number == SYS_io_setup && space_read(s, c->arg[1], &at, sizeof(at)) != 0)
			at = 0;
		c->object = look_up(s, NULL, at);
	}
	struct mapping_change change = mapping_done(c, result);
	if (syscall_state(th)->is_flushed && c->number == SYS_mremap &&
	    (taddr_t)result == c->arg[0])
		change.come = (struct mapping_range){
			c->arg[0], c->arg[0] + ROUND_UP(c->arg[2], (uint64_t)PAGE_SIZE_MIN)};
	if (c->number == SYS_brk && result > 0)
		s->syscalls.program_break = (taddr_t)result;
	if (!syscall_state(th)->is_flushed)
		emit(t, th, regs,
		     &(struct range_event){HEAP_UNMAP, change.gone, change.function});
	flush_others(t, th, change.come);
	emit(t, th, regs, &(struct range_event){HEAP_MAP, change.come, change.function});
	check_modules(t, th, change.gone);
	if (!mapping_is_empty(change.come) && c->number == SYS_mmap && c->arg[2] & PROT_EXEC)
		space_forget_misses(s);
	if (th->tid == th->process->pid && regs->word[t->arch->sp] < s->syscalls.stack_start)
		check_stack(t, th);
}

/* -- entry and exit -- */

/* The call is cancelled; at its exit, which follows at once, the thread is moved back before it. */
static void rewind_call(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	syscall_state(th)->is_rewinding = true;
	syscall_state(th)->call.number = (long)regs->word[t->arch->syscall_nr];
	syscall_state(th)->call.arg[0] = regs->word[t->arch->syscall_arg[0]];
	ptrace_set_word(th->tid, t->arch->syscall_nr, (uint64_t)-1);
	ptrace_cont_syscall(th->tid, 0);
}

static void finish_rewind(struct target *t, struct thread *th)
{
	struct arch_regs regs;
	syscall_state(th)->is_rewinding = false;
	if (ptrace_get_regs(th->tid, &regs) != 0)
		return;
	regs.word[t->arch->syscall_insn_nr] = (uint64_t)syscall_state(th)->call.number;
	/* which may be where the result is */
	regs.word[t->arch->syscall_arg[0]] = syscall_state(th)->call.arg[0];
	regs.word[t->arch->syscall_nr] = (uint64_t)-1;
	regs.word[t->arch->pc] -= t->arch->syscall_insn_size;
	ptrace_set_regs(th->tid, &regs);
}

/* Records the call of @number that @th is about to make with @regs, if it is watched. */
static bool take_call(struct target *t, struct thread *th, long number,
		      const struct arch_regs *regs)
{
	const struct address_space *s = th->process->space;
	struct syscall_state *st = syscall_state(th);
	st->has_call = s->watch.is_profiled && s->watch.is_ready &&
		       mapping_is_wanted(&t->options, number);
	st->call = (struct mapping_call){.number = number,
					 .program_break = s->syscalls.program_break};
	for (int i = 0; i < 6; i++)
		st->call.arg[i] = regs->word[t->arch->syscall_arg[i]];
	st->makes_code = t->syscalls.way == SYSCALLS_SITES && s->watch.is_profiled &&
			 s->watch.is_ready && !s->syscalls.stops_at_all &&
			 mapping_makes_code(&st->call);
	return st->has_call || st->makes_code;
}

static void enter(struct target *t, struct thread *th, const struct arch_regs *regs)
{
	struct syscall_state *st = syscall_state(th);
	long number = (long)regs->word[t->arch->syscall_nr];
	if (!take_call(t, th, number, regs))
		return;
	st->is_flushed = false;
	if (number == SYS_shmdt || number == SYS_io_destroy)
		st->call.object = look_up(th->process->space, NULL, st->call.arg[0]);
}

/* From here on, for the kernel and all other code the thread is at the original instruction. */
static bool leave_stub(struct target *t, struct thread *th, struct arch_regs *regs)
{
	taddr_t site = syscall_state(th)->site;
	syscall_state(th)->site = 0;
	if (site == 0)
		return false;
	regs->word[t->arch->pc] = site + t->arch->syscall_insn_size;
	ptrace_set_word(th->tid, t->arch->pc, regs->word[t->arch->pc]);
	return true;
}

static void serve_entry(struct target *t, struct thread *th, bool is_filtered)
{
	struct arch_regs regs;
	if (ptrace_get_regs(th->tid, &regs) == 0) {
		is_filtered |= leave_stub(t, th, &regs);
		if (t->is_stopping) {
			rewind_call(t, th, &regs);
			return;
		}
		enter(t, th, &regs);
	}
	syscall_state(th)->is_inside = true;
	syscall_state(th)->awaits_exit =
		is_filtered && (syscall_state(th)->has_call || syscall_state(th)->makes_code);
	thread_resume(t, th, 0);
}

/*
 * A filter of the program may leave calls to a tracer, too. Without one they fail with ENOSYS, and
 * they do so if the tracer cancels them.
 */
void syscalls_serve_seccomp(struct target *t, struct thread *th)
{
	unsigned long mark = FILTER_MARK;
	if (ptrace_event_message(th->tid, &mark) == 0 && mark != FILTER_MARK && !t->is_stopping) {
		ptrace_set_word(th->tid, t->arch->syscall_nr, (uint64_t)-1);
		thread_resume(t, th, 0);
		return;
	}
	serve_entry(t, th, true);
}

static void serve_exit(struct target *t, struct thread *th)
{
	struct syscall_state *st = syscall_state(th);
	struct arch_regs regs;
	if ((st->has_call || st->makes_code) && ptrace_get_regs(th->tid, &regs) == 0) {
		if (st->has_call)
			apply(t, th, &regs);
		if (st->makes_code)
			syscall_sites_check_made(
				t, th->process->space,
				mapping_code(&st->call, (int64_t)regs.word[t->arch->syscall_ret]));
	}
	st->is_inside = st->awaits_exit = st->has_call = st->makes_code = false;
}

/*
 * If all calls stop from now on, they must do so before any thread can run the code that @th
 * made.
 */
static void resume_with_others(struct target *t, struct thread *th)
{
	bool is_stopping = t->is_stopping;
	t->is_stopping |= t->loop.must_restart;
	thread_resume(t, th, 0);
	t->is_stopping = is_stopping;
}

void syscalls_serve(struct target *t, struct thread *th, bool was_interrupted)
{
	int op = ptrace_syscall_op(th->tid);
	bool is_entry = op < 0 ? !syscall_state(th)->is_inside : op == PTRACE_SYSCALL_INFO_ENTRY;
	if (syscall_state(th)->is_rewinding) {
		finish_rewind(t, th);
		syscall_state(th)->is_inside = false;
		thread_resume(t, th, 0);
		return;
	}
	if (is_entry) {
		serve_entry(t, th, false);
		return;
	}
	serve_exit(t, th);
	if (was_interrupted)
		inject_restart_interrupted(t, th);
	resume_with_others(t, th);
}

enum trap_answer syscalls_serve_site(struct target *t, struct thread *th, struct trap *trap,
				     struct arch_regs *regs)
{
	int number = (int)regs->word[t->arch->syscall_insn_nr]; /* where the kernel finds it, too */
	if (take_call(t, th, number, regs))
		syscall_state(th)->site = trap->addr;
	syscall_state(th)->has_call = syscall_state(th)->makes_code =
		false; /* at the call's entry only */
	ptrace_set_word(th->tid, t->arch->pc, trap->stub.jump);
	return TRAP_RESUME;
}

/*
 * Its handler must not run between the stub and the call: move it back to the breakpoint. If the
 * signal interrupts a call that waits in a stub, the handler must see the original instruction: the
 * C library's checks whether a call can be cancelled there (glibc since 2.41, musl). A repeated
 * call then hits the breakpoint again.
 */
void syscalls_before_signal(struct target *t, struct thread *th)
{
	struct arch_regs regs;

	syscall_state(th)->site = 0;
	if (t->syscalls.way != SYSCALLS_SITES || ptrace_get_regs(th->tid, &regs) != 0)
		return;
	taddr_t pc = regs.word[t->arch->pc];
	taddr_t real = space_original_pc(th->process->space, t->arch, pc);
	if (real != pc)
		ptrace_set_word(th->tid, t->arch->pc, real);
}

void syscalls_serve_exit(struct target *t, struct thread *th)
{
	struct address_space *s = th->process->space;
	if (t->options.watch.mappings && th->tid == th->process->pid && s->watch.is_profiled &&
	    s->watch.is_ready)
		check_stack(t, th);
}
