/*
 * A thread that makes system calls for ptmem while its process is told to stop and to go on:
 * afterwards it does what it was told last.
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

#include "base/log.h"
#include "target/guard.h"
#include "target/thread.h"

static struct target *target;
static struct thread *thread;
static volatile uint64_t *count; /* what the child counts up for ever */

static void ignore_module(void *ctx, struct space *s, struct module *m)
{
	(void)ctx, (void)s, (void)m;
}

static pid_t start_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			++*count;
	}
	return pid;
}

/* Its only thread is left stopped, and the world with it. */
static void seize_child(bool has_guard)
{
	static const struct target_options options = {.no_probes = true};
	static const struct target_sink sink = {.module_loaded = ignore_module, .module_unloaded = ignore_module};
	pid_t pid = start_child();
	target = target_new(&options, &sink);
	struct space *s = space_new(pid);
	assert_int_equal(space_update_modules(s, NULL, NULL, NULL), 0);
	if (has_guard) {
		assert_int_equal(guard_start(target), 0);
		guard_space(target, s);
	}
	process_add(target, pid, s);
	assert_int_equal(target_seize_all(target, pid), 0);
	thread = thread_find(target, pid);
	assert_non_null(thread);
	if (has_guard) {
		guard_install(target, s, thread);
		assert_true(guard_has_injection(s));
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
	for (uint64_t end = target_clock() + ms * 1000000ull; target_clock() < end;) {
		if (loop_step(target, true) != 0)
			loop_wait_for_child(1);
	}
}

static void assert_runs(void)
{
	uint64_t before = *count;
	for (int i = 0; i < 10000 && *count == before; i++)
		serve_for(1);
	assert_true(*count > before);
}

/* However slow the machine: one that runs counts at some time. */
static void assert_stopped(void)
{
	uint64_t before = *count;
	for (int i = 0; thread->state != THREAD_LISTENING && i < 10000; i++) {
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
	for (int i = 0; target_process_count(target) > 0 && i < 10000; i++)
		serve_for(1);
	assert_int_equal(target_process_count(target), 0);
	target_free(target);
}

/* A SIGCONT between two calls is not lost. */
static void assert_goes_on(void)
{
	kill(thread->tid, SIGCONT);
	make_call();
	loop_start_world(target);
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
		loop_start_world(target);
		assert_stopped();
		kill(thread->tid, SIGCONT);
		assert_runs();
		end_child();
	}
}

/* It was stopped, and told to go on while it worked. */
static void test_out_of_group_stop(void **state)
{
	for (int i = 0; i < 2; i++) {
		seize_child(i);
		loop_start_world(target);
		kill(thread->tid, SIGSTOP);
		assert_stopped();
		loop_stop_world(target);
		make_call();
		loop_start_world(target);
		assert_stopped();
		loop_stop_world(target);
		make_call();
		assert_goes_on();
	}
}

/* Stopped for the signal itself when the world is stopped. */
static void test_held_signal(void **state)
{
	for (int i = 0; i < 2; i++) {
		seize_child(i);
		loop_start_world(target);
		target->is_stopping = true;
		kill(thread->tid, SIGSTOP);
		for (int k = 0; thread->held_signal != SIGSTOP && k < 10000; k++)
			serve_for(1);
		assert_int_equal(thread->held_signal, SIGSTOP);
		make_call();
		assert_goes_on();
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_stays_stopped),
		cmocka_unit_test(test_out_of_group_stop),
		cmocka_unit_test(test_held_signal),
	};
	sigset_t set;
	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
