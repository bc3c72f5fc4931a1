/* Lines of /proc/PID/maps and wait statuses: what the kernel returns, and what it never would. */
#include "tracee/os/maps.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tracee/os/ptrace.h"

static struct map parse(const char *line)
{
	struct map m;
	assert_int_equal(maps_parse_line(line, &m), 0);
	return m;
}

static void test_line(void **state)
{
	struct map m = parse("7f0000001000-7f0000003000 r-xp 0000a000 fd:01 1234567    /usr/lib/a b.so");
	assert_int_equal(m.start, 0x7f0000001000);
	assert_int_equal(m.end, 0x7f0000003000);
	assert_int_equal(m.offset, 0xa000);
	assert_true(m.dev == makedev(0xfd, 1));
	assert_int_equal(m.ino, 1234567);
	assert_true(m.is_read && !m.is_write && m.is_exec && !m.is_shared && !m.is_deleted);
	assert_string_equal(m.path, "/usr/lib/a b.so");
	free(m.path);
	m = parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
	assert_true(m.start == 0xffffffffff600000);
	assert_string_equal(m.path, "[vsyscall]");
	free(m.path);
	m = parse("1000-2000 rw-s 00000000 00:00 0 ");
	assert_true(m.is_shared && m.is_write);
	assert_string_equal(m.path, "");
	free(m.path);
	m = parse("1000-2000 rw-s 00000000 00:00 12");
	assert_int_equal(m.ino, 12);
	assert_string_equal(m.path, "");
	free(m.path);
}

/* A file may have such a name, too: the inode decides (space.c). */
static void test_deleted(void **state)
{
	struct map m = parse("1000-2000 r-xp 00000000 fd:01 7 /tmp/x (deleted)");
	assert_true(m.is_deleted);
	assert_string_equal(m.path, "/tmp/x");
	free(m.path);
	m = parse("1000-2000 r-xp 00000000 fd:01 7 /tmp/x (deleted) (deleted)");
	assert_true(m.is_deleted);
	assert_string_equal(m.path, "/tmp/x (deleted)");
	free(m.path);
	m = parse("1000-2000 r-xp 00000000 fd:01 7 /tmp/(deleted)");
	assert_false(m.is_deleted);
	assert_string_equal(m.path, "/tmp/(deleted)");
	free(m.path);
}

static void test_hostile_lines(void **state)
{
	static const char *const lines[] = {
		"", "x", "1000-2000", "1000-2000 r-xp", "1000-2000 r-xp 0 fd:01",
		"2000-1000 r-xp 00000000 fd:01 7 /a", "1000-1000 r-xp 00000000 fd:01 7 /a",
		"1000-2000 rxp 00000000 fd:01 7 /a", "1000 2000 r-xp 00000000 fd:01 7 /a",
		"1000-2000 r-xp 00000000 fd:01 /a", "1000-2000 r-xp 00000000 fd01 7 /a",
	};
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct map m = {.ino = 99};
		assert_int_equal(maps_parse_line(lines[i], &m), -EINVAL);
		assert_int_equal(m.ino, 99); /* untouched */
	}
}

static void test_own(void **state)
{
	struct maps maps;
	taddr_t before = 0, here = (taddr_t)(uintptr_t)&maps;
	assert_int_equal(maps_read(getpid(), &maps), 0);
	for (size_t i = 0; i < maps.list.count; i++) {
		assert_true(maps.list.data[i].start >= before);
		before = maps.list.data[i].end;
	}
	const struct map *m = maps_find(&maps, here);
	assert_non_null(m);
	assert_true(m->is_read && m->is_write);
	maps_deinit(&maps);
	assert_int_equal(maps_read(1 << 30, &maps), -ESRCH);
}

/* Without address randomisation the stack ends where a program's addresses do. */
static void test_gap(void **state)
{
	static struct map list[] = {
		{.start = 0x555555554000, .end = 0x555555580000, .path = "/bin/a"},
		{.start = 0x7fffec700000, .end = 0x7ffff7ca0000, .path = "/memfd:"},
		{.start = 0x7ffff7ca0000, .end = 0x7ffff7fff000, .path = "/lib/libc.so.6"},
		{.start = 0x7ffffffde000, .end = 0x7ffffffff000, .path = "[stack]"},
		{.start = 0xffffffffff600000, .end = 0xffffffffff601000, .path = "[vsyscall]"},
	};
	const struct maps maps = {.list = {list, ARRAY_SIZE(list), ARRAY_SIZE(list)}};
	taddr_t at = 0;
	assert_int_equal(maps_find_gap(&maps, 0x7ffff7d3e930, 1 << 30, 0x4000, &at), 0);
	assert_int_equal(at, 0x7fffb7d3f000); /* far from the maps that the kernel adds */
	assert_int_equal(maps_find_gap(&maps, 0x555555560000, 1 << 30, 0x4000, &at), 0);
	assert_int_equal(at, 0x555515560000); /* not where the heap grows */
	assert_int_equal(maps_find_gap(&maps, 1ull << 46, 1ull << 46, 1 << 27, &at), 0);
	assert_in_range(at, 0x2aaaa0000000, 0x2aaab0000000); /* the middle of the largest gap */
	list[1].start = 0x7fff80000000;
	assert_int_equal(maps_find_gap(&maps, 0x7ffff7d3e930, 1 << 30, 0x4000, &at), -ENOMEM);
}

static void check_stop(int status, enum stop_kind kind, int value)
{
	struct stop s = stop_decode(status);
	assert_int_equal(s.kind, kind);
	assert_int_equal(s.value, value);
}

static int stopped(int sig, int event)
{
	return event << 16 | sig << 8 | 0x7f;
}

static void test_stops(void **state)
{
	static const int stopping[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
	check_stop(3 << 8, STOP_EXITED, 3);
	check_stop(SIGKILL, STOP_KILLED, SIGKILL);
	check_stop(SIGSEGV | 0x80, STOP_KILLED, SIGSEGV); /* with a core file */
	check_stop(stopped(SIGTRAP, 0), STOP_SIGNAL, SIGTRAP);
	check_stop(stopped(SIGTRAP | 0x80, 0), STOP_SYSCALL, 0);
	check_stop(stopped(SIGTRAP, PTRACE_EVENT_STOP), STOP_INTERRUPT, SIGTRAP);
	check_stop(stopped(SIGTRAP, PTRACE_EVENT_EXEC), STOP_EXEC, PTRACE_EVENT_EXEC);
	check_stop(stopped(SIGTRAP, PTRACE_EVENT_EXIT), STOP_EXIT, PTRACE_EVENT_EXIT);
	check_stop(stopped(SIGTRAP, 99), STOP_OTHER, 99);
	for (size_t i = 0; i < ARRAY_SIZE(stopping); i++) {
		check_stop(stopped(stopping[i], PTRACE_EVENT_STOP), STOP_GROUP, stopping[i]);
		check_stop(stopped(stopping[i], 0), STOP_SIGNAL, stopping[i]); /* about to get it */
	}
	assert_int_equal(stop_decode(0xffff).kind, STOP_OTHER); /* WIFCONTINUED */
}

static void check_bounds(int fd, const struct map *m, taddr_t addr)
{
	struct map_bounds found;

	assert_int_equal(maps_query_bounds(fd, addr, &found), 1);
	assert_int_equal(found.is_main_stack, map_is_main_stack(m));
	assert_int_equal(found.end, m->end);
	if (!found.is_main_stack) /* which may grow meanwhile */
		assert_int_equal(found.start, m->start);
}

/* A process whose memory does not change: reading maps allocates, so our own would. */
static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return pid;
}

static void check_queries(int fd, const struct maps *maps)
{
	struct map_bounds none;

	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (m->start >> 63)
			continue; /* the kernel's own */
		assert_int_equal(maps_query(fd, m->start), m->is_exec);
		assert_int_equal(maps_query(fd, m->end - 1), m->is_exec);
		check_bounds(fd, m, m->start);
		check_bounds(fd, m, m->end - 1);
		assert_int_equal(maps_query_free(fd, m->start, 1), 0);
		taddr_t below = i ? m[-1].end : 0; /* free up to m->start */
		assert_int_equal(maps_query_free(fd, below, m->start - below), 1);
		assert_int_equal(maps_query_free(fd, below, m->start - below + 1), 0);
	}
	assert_int_equal(maps_query(fd, 0), 0);
	assert_int_equal(maps_query_bounds(fd, 0, &none), 0);
}

/* One address at a time, where the kernel can: the same as all maps say. */
static void test_query(void **state)
{
	struct maps maps;
	struct map_bounds none;
	pid_t pid = start_sleeper();
	int fd = maps_open(pid);

	assert_true(fd >= 0);
	assert_int_equal(maps_read(pid, &maps), 0);
	if (maps_query(fd, (taddr_t)(uintptr_t)test_query) < 0)
		print_message("this kernel cannot be asked for one address\n");
	else
		check_queries(fd, &maps);
	assert_true(maps_query(-1, 0) < 0);
	assert_true(maps_query_bounds(-1, 0, &none) < 0);
	assert_true(maps_query_free(-1, 0, 1) < 0);
	assert_true(maps_open(-1) < 0);
	maps_deinit(&maps);
	close(fd);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_hostile_lines),
		cmocka_unit_test(test_own), cmocka_unit_test(test_gap),
		cmocka_unit_test(test_query),
		cmocka_unit_test(test_stops),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
