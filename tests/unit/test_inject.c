/*
 * A thread that makes system calls for ptmem while its process receives SIGSTOP and SIGCONT:
 * afterwards the last of them applies. And a thread that hit a breakpoint before it was stopped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "tracee/control/attach.h"
#include "tracee/control/control.h"
#include "tracee/control/target.h"
#include "tracee/guard/guardian.h"
#include "tracee/guard/sigtrap_handler.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/stop_all.h"
#include "tracee/os/ptrace.h"
#include "tracee/state/event_sink.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"
#include "tracee/state/trap_table.h"

#define WAITS 300000 /* of a millisecond: the machine may be busy */

static struct target *target;
static struct thread *thread;
static volatile uint64_t *count; /* counted up forever by the child */
static volatile uint64_t *wants_trap; /* the child queues a breakpoint's signal to itself, once */

static void ignore_module(void *ctx, struct address_space *s, struct module *m)
{
	(void)ctx, (void)s, (void)m;
}

static void queue_trap(pid_t pid)
{
	siginfo_t info = {.si_signo = SIGTRAP, .si_code = SI_KERNEL};
	*wants_trap = 0;
	syscall(SYS_rt_tgsigqueueinfo, pid, pid, SIGTRAP, &info);
}

static pid_t start_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pid = getpid();
		for (;;) {
			++*count;
			if (*wants_trap)
				queue_trap(pid);
		}
	}
	return pid;
}

/* Its only thread remains stopped, and with it the world. */
static void seize_child(bool has_guard)
{
	static struct registry registry;
	static const struct target_options options = {.probes = {.none = true}};
	static const struct event_sink sink = {.module_loaded = ignore_module, .module_unloaded = ignore_module};
	pid_t pid = start_child();
	target = target_new(&options, &sink, &registry);
	struct address_space *s = space_new(&registry, pid);
	assert_int_equal(space_update_modules(s, NULL, NULL, NULL), 0);
	if (has_guard) {
		assert_int_equal(guardian_start(target, cleanup_run), 0);
		journal_begin(target, s);
	}
	process_add(target, pid, s);
	assert_int_equal(target_seize_all(target, pid), 0);
	thread = thread_find(target, pid);
	assert_non_null(thread);
	if (has_guard) {
		trap_handler_install(target, s, thread);
		assert_true(journal_has_injection(s));
	}
}

static void make_call(void)
{
	static const uint64_t none[6];
	int64_t result = 0;
	assert_int_equal(inject_syscall(target, thread, SYS_getpid, none, &result), 0);
	assert_int_equal(result, thread->tid);
}

static void serve_for(unsigned ms)
{
	for (uint64_t end = clock_now_ns() + ms * 1000000ull; clock_now_ns() < end;) {
		if (stops_serve_next(target, true) != 0)
			wait_for_child(1);
	}
}

static void assert_runs(void)
{
	uint64_t before = *count;
	for (int i = 0; i < WAITS && *count == before; i++)
		serve_for(1);
	assert_true(*count > before);
}

/* However slow the machine, a thread that runs counts at some time. */
static void assert_stopped(void)
{
	uint64_t before = *count;
	for (int i = 0; thread->state != THREAD_LISTENING && i < WAITS; i++) {
		serve_for(1);
		before = *count;
	}
	serve_for(100);
	assert_true(*count == before);
	assert_int_equal(thread->state, THREAD_LISTENING);
}

static void end_child(void)
{
	pid_t pid = thread->tid;
	kill(pid, SIGKILL);
	for (int i = 0; target_process_count(target) > 0 && i < WAITS; i++)
		serve_for(1);
	assert_int_equal(target_process_count(target), 0);
	target_free(target);
}

/* A SIGCONT between two calls is not lost. */
static void assert_goes_on(void)
{
	kill(thread->tid, SIGCONT);
	make_call();
	resume_all(target);
	assert_runs();
	end_child();
}

static void test_goes_on(void **state)
{
	for (int i = 0; i < 4; i++) {
		seize_child(i & 1);
		kill(thread->tid, i & 2 ? SIGTSTP : SIGSTOP);
		make_call();
		assert_goes_on();
	}
}

static void test_stays_stopped(void **state)
{
	for (int i = 0; i < 2; i++) {
		seize_child(i);
		kill(thread->tid, SIGSTOP);
		make_call();
		make_call();
		resume_all(target);
		assert_stopped();
		kill(thread->tid, SIGCONT);
		assert_runs();
		end_child();
	}
}

/* It was stopped and continued while it made the calls. */
static void test_out_of_group_stop(void **state)
{
	for (int i = 0; i < 2; i++) {
		seize_child(i);
		resume_all(target);
		kill(thread->tid, SIGSTOP);
		assert_stopped();
		stop_all(target);
		make_call();
		resume_all(target);
		assert_stopped();
		stop_all(target);
		make_call();
		assert_goes_on();
	}
}

/* Stopped for the signal itself when the world is stopped. */
static void test_held_signal(void **state)
{
	for (int i = 0; i < 2; i++) {
		seize_child(i);
		resume_all(target);
		target->is_stopping = true;
		kill(thread->tid, SIGSTOP);
		for (int k = 0; thread->held_signal != SIGSTOP && k < WAITS; k++)
			serve_for(1);
		assert_int_equal(thread->held_signal, SIGSTOP);
		make_call();
		assert_goes_on();
	}
}

static enum stop_kind run_to_stop(int (*run)(pid_t tid, int sig))
{
	int status = 0;
	assert_int_equal(run(thread->tid, 0), 0);
	assert_int_equal(waitpid(thread->tid, &status, __WALL), thread->tid);
	return stop_decode(status).kind;
}

static enum trap_answer jump(struct target *t, struct thread *th, struct trap *trap,
			     struct arch_regs *regs)
{
	ptrace_set_word(th->tid, t->arch->pc, trap->stub.jump);
	return TRAP_RESUME;
}

/* Interrupted after a breakpoint, before its signal arrived. */
static void test_pending_trap(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct arch_regs regs;
		struct proc_status st;
		seize_child(i);
		*wants_trap = 1;
		do { /* it may have others to make first */
			assert_int_equal(run_to_stop(ptrace_cont_syscall), STOP_SYSCALL);
			assert_int_equal(ptrace_get_regs(thread->tid, &regs), 0);
		} while (regs.word[target->arch->syscall_nr] != SYS_rt_tgsigqueueinfo);
		assert_int_equal(ptrace_interrupt(thread->tid), 0);
		assert_int_equal(run_to_stop(ptrace_cont), STOP_INTERRUPT);
		assert_int_equal(proc_status_read(thread->tid, &st), 0);
		assert_true(st.pending >> (SIGTRAP - 1) & 1);

		assert_int_equal(ptrace_get_regs(thread->tid, &regs), 0);
		taddr_t pc = regs.word[target->arch->pc];
		struct trap trap = {.addr = pc - target->arch->trap_pc_offset,
				    .kind = TRAP_PAD_EXIT,
				    .serve = jump};
		trap.stub.jump = pc + 1;
		space_trap_add(thread->process->space, &trap);
		stop_all_serve_traps(target, thread->process->space);
		assert_int_equal(ptrace_get_regs(thread->tid, &regs), 0);
		assert_int_equal(regs.word[target->arch->pc], trap.stub.jump);
		assert_int_equal(proc_status_read(thread->tid, &st), 0);
		assert_false(st.pending >> (SIGTRAP - 1) & 1);
		assert_true(thread->is_held);

		assert_int_equal(ptrace_set_word(thread->tid, target->arch->pc, pc), 0);
		make_call();
		resume_all(target);
		assert_runs();
		end_child();
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_stays_stopped),
		cmocka_unit_test(test_out_of_group_stop),
		cmocka_unit_test(test_held_signal),
		cmocka_unit_test(test_pending_trap),
	};
	sigset_t set;
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	wants_trap = count + 1;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
