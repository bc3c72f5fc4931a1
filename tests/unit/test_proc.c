/*
 * Contents of /proc: status and stat of programs with ordinary and hostile names, and of this very
 * process.
 */
#include "base/proc.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct proc_status status_of(const char *text)
{
	struct proc_status st;
	proc_status_parse(text, strlen(text), &st);
	return st;
}

static void test_status(void **state)
{
	struct proc_status st = status_of("Name:\tcat\nState:\tt (tracing stop)\nTgid:\t12\nNgid:\t0\nPid:\t13\nPPid:\t11\n"
					  "TracerPid:\t99\nUid:\t1000\t1\t2\t3\nVmSize:\t    6076 kB\n"
					  "SigPnd:\t0000000000000010\nShdPnd:\tffffffffffffffff\n"
					  "SigIgn:\t8000000000001000\nSigCgt:\t00000000000000ab\n"
					  "NSpid:\t12\t7\t1\n"
					  "CapInh:\t0000000000000001\nCapEff:\t000001ffffffffff\n"
					  "Seccomp:\t2\nSeccomp_filters:\t3\n");
	assert_int_equal(st.state, 't');
	assert_int_equal(st.process, 12);
	assert_int_equal(st.parent, 11);
	assert_int_equal(st.tracer, 99);
	assert_int_equal(st.ns_pid, 1);
	assert_int_equal(status_of("NSpid:\t12\n").ns_pid, 0);
	assert_int_equal(status_of("NSpid:\t12\t\n").ns_pid, 0);
	assert_int_equal(status_of("NSpid:\t12\t99999999999\n").ns_pid, 0);
	assert_int_equal(st.uid, 1000);
	assert_int_equal(st.fs_uid, 3);
	assert_true(st.capabilities == 0x1ffffffffff);
	assert_true(st.has_memory);
	assert_int_equal(st.pending, 0x10);
	assert_true(st.pending_shared == UINT64_MAX);
	assert_true(st.ignored == 0x8000000000001000);
	assert_int_equal(st.caught, 0xab);
	assert_int_equal(st.seccomp_mode, 2);
	assert_int_equal(st.seccomp_filters, 3);
	assert_int_equal(st.state, 't');
}

static void test_status_says_nothing(void **state)
{
	struct proc_status st = status_of("State:\nTgid:\t99999999999\nTracerPid:\tx\nUid:\t-1\nSeccomp:\n"
					  "SigPnd:\t10000000000000000\nno colon\n");
	assert_int_equal(st.state, 0);
	assert_int_equal(st.process, 0);
	assert_int_equal(st.tracer, 0);
	assert_int_equal(st.uid, -1);
	assert_int_equal(st.fs_uid, -1);
	assert_int_equal(st.capabilities, 0);
	assert_false(st.has_memory);
	assert_int_equal(st.pending, 0);
	assert_int_equal(st.seccomp_mode, -1);
	assert_int_equal(st.seccomp_filters, -1);
	assert_int_equal(status_of("").state, 0);
}

/* The kernel writes a line feed in a name as "\n"; keys match only at the start of a line. */
static void test_status_hostile(void **state)
{
	struct proc_status st = status_of("Name:\tTracerPid:\t7\nUmask:\t\\nTracerPid:\t8\n TracerPid:\t9\n"
					  "XTracerPid:\t1\nTracerPidX:\t2\nTracer:\t3\nState:\tX (dead)\n");
	assert_int_equal(st.tracer, 0);
	assert_int_equal(st.state, 'X');
	char long_line[20000]; /* of the groups; the following keys are still found */
	memset(long_line, '1', sizeof(long_line));
	memcpy(long_line, "Groups:\t", 8);
	strcpy(long_line + sizeof(long_line) - 16, "\nTracerPid:\t5\n");
	assert_int_equal(status_of(long_line).tracer, 5);
	proc_status_parse("Tgid:\t123", 7, &st); /* not a byte beyond the size */
	assert_int_equal(st.process, 1);
}

#define FIELDS_5_TO_27 " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"
#define FIELDS_29_TO_46 " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18"

static void check_stat(const char *text, char state)
{
	struct proc_stat st = {0};
	assert_int_equal(proc_stat_parse(text, strlen(text), &st), 0);
	assert_int_equal(st.state, state);
	assert_int_equal(st.start_stack, 140728);
	assert_int_equal(st.start_brk, 94000);
}

#define AFTER_NAME(state) " " state " 1" FIELDS_5_TO_27 " 140728" FIELDS_29_TO_46 " 94000 0 0\n"

static void test_stat(void **state)
{
	check_stat("7 (cat)" AFTER_NAME("S"), 'S');
	check_stat("7 ()" AFTER_NAME("Z"), 'Z');
	check_stat("7 (a) R 1 (b)" AFTER_NAME("S"), 'S');
	check_stat("7 (a) Z 1)" AFTER_NAME("R"), 'R');
	check_stat("7 ((((\n) X)" AFTER_NAME("T"), 'T');
	check_stat("7 () Z 1 1 1 1 1)" AFTER_NAME("t"), 't');
}

static void check_flags(const char *text, bool is_kernel_thread, bool is_exiting)
{
	struct proc_stat st;
	assert_int_equal(proc_stat_parse(text, strlen(text), &st), 0);
	assert_int_equal(st.is_kernel_thread, is_kernel_thread);
	assert_int_equal(st.is_exiting, is_exiting);
}

static void test_stat_flags(void **state)
{
	check_flags("7 (cat) S 1 7 7 0 -1 4194560 0 0", false, false);
	check_flags("7 (cat) R 1 7 7 0 -1 4194564 0 0", false, true);
	check_flags("7 (kworker) S 1 7 7 0 -1 69238880 0 0", true, false);
	check_flags("7 (cat) S 1 7 7", false, false);
}

static void test_stat_cut(void **state)
{
	static const char text[] = "7 (cat) S 1" FIELDS_5_TO_27 " 140728" FIELDS_29_TO_46 " 94000 0 0\n";
	struct proc_stat st = {.state = '?'};
	assert_int_equal(proc_stat_parse("", 0, &st), -EINVAL);
	assert_int_equal(proc_stat_parse("7 (cat", 6, &st), -EINVAL);
	assert_int_equal(proc_stat_parse("7 (cat)", 7, &st), -EINVAL);
	assert_int_equal(proc_stat_parse("7 (cat) ", 8, &st), -EINVAL);
	assert_int_equal(st.state, '?'); /* untouched */
	for (size_t n = 9; n < sizeof(text); n++)
		assert_int_equal(proc_stat_parse(text, n, &st), 0);
	assert_int_equal(proc_stat_parse("7 (cat) S 1", 11, &st), 0);
	assert_int_equal(st.start_stack, 0);
	assert_int_equal(st.start_brk, 0);
}

static void test_self(void **state)
{
	static const char *const names[] = {"plain", "a) R 1 (b", ") Z 0 (", "\nTracerPid:\t1", "((("};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct proc_status status;
		struct proc_stat stat;
		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_int_equal(proc_status_read(getpid(), &status), 0);
		assert_int_equal(status.process, getpid());
		assert_int_equal(status.state, 'R');
		assert_int_equal(status.uid, getuid());
		assert_true(status.has_memory);
		assert_true(status.tracer != 1 || getppid() == 1);
		assert_int_equal(proc_stat_read(getpid(), &stat), 0);
		assert_int_equal(stat.state, 'R');
		uint64_t here = (uint64_t)(uintptr_t)__builtin_frame_address(0); /* locals may be ASan's */
		assert_true(stat.start_stack > here && stat.start_stack - here < 8 << 20);
		assert_true(stat.start_brk != 0);
		assert_false(proc_is_dead(getpid()));
		assert_false(proc_is_zombie(getpid()));
	}
}

static void test_zombie(void **state)
{
	struct proc_status st;
	siginfo_t info;
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "a) R 1 (b");
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(proc_is_dead(pid));
	assert_true(proc_is_zombie(pid));
	assert_int_equal(proc_status_read(pid, &st), 0);
	assert_int_equal(st.state, 'Z');
	assert_false(st.has_memory);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(proc_is_dead(pid));
	assert_false(proc_is_zombie(pid));
	assert_int_equal(proc_status_read(pid, &st), -ESRCH);
}

static void *execute(void *arg)
{
	char *argv[] = {"true", NULL};
	execv("/bin/true", argv);
	return arg;
}

/* The first thread's id is another's after execve, and that thread's own is gone: it lives on. */
static void test_heir(void **state)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		pthread_create(&thread, NULL, execute, NULL);
		for (;;)
			pause();
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, pid, NULL, options), 0);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	unsigned long former = 0;
	pid_t stopped;
	while ((stopped = waitpid(-1, &status, __WALL)) > 0 && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_EXEC)
			break;
		ptrace(PTRACE_CONT, stopped, NULL, NULL);
	}
	assert_int_equal(stopped, pid);
	assert_int_equal(ptrace(PTRACE_GETEVENTMSG, pid, NULL, &former), 0);
	assert_true(former != 0 && (pid_t)former != pid);
	assert_true(proc_is_dead((pid_t)former));
	assert_false(proc_is_zombie((pid_t)former));
	assert_false(proc_is_zombie(pid));
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_files(void **state)
{
	char *exe = proc_read_link(getpid(), "exe");
	assert_non_null(exe);
	assert_int_equal(*exe, '/');
	assert_non_null(strstr(exe, "test_proc"));
	free(exe);
	assert_null(proc_read_link(getpid(), "no-such-link"));
	FILE *f = proc_open(getpid(), "comm");
	assert_non_null(f);
	fclose(f);
	assert_null(proc_open(getpid(), "no-such-file"));
	DIR *threads = proc_open_threads(getpid());
	assert_non_null(threads);
	assert_int_equal(proc_next_thread(threads), getpid());
	assert_int_equal(proc_next_thread(threads), 0);
	closedir(threads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_status_says_nothing),
		cmocka_unit_test(test_status_hostile),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_stat_flags),
		cmocka_unit_test(test_stat_cut),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_zombie),
		cmocka_unit_test(test_heir),
		cmocka_unit_test(test_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
