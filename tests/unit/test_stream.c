/*
 * Streams that write all: signals that interrupt, for which a handler counts, come while a write or an open
 * waits for its reader, which begins when enough have come.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/globals.h"

enum { SIZE = 1 << 20, ENOUGH = 5 };

static volatile sig_atomic_t ticks;
static volatile sig_atomic_t asks_to_leave; /* each tick does */

static void on_tick(int sig)
{
	ticks = ticks + 1;
	if (asks_to_leave)
		globals.signals.leave_count = globals.signals.leave_count + 1;
}

/* Like ptmem's own: without SA_RESTART. */
static void start_ticks(void)
{
	const struct itimerval often = {{0, 1000}, {0, 1000}};
	const struct sigaction sa = {.sa_handler = on_tick};

	ticks = 0;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

static void stop_ticks(void)
{
	const struct itimerval off = {{0, 0}, {0, 0}};

	setitimer(ITIMER_REAL, &off, NULL);
}

static void await_ticks(void)
{
	const struct timespec moment = {0, 1000000};

	for (int begin = ticks; ticks < begin + ENOUGH;)
		nanosleep(&moment, NULL);
}

/* A thread that blocks all signals: only the writer receives them. */
static pthread_t start_reader(void *(*run)(void *), void *what)
{
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	assert_int_equal(pthread_create(&thread, NULL, run, what), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return thread;
}

/* Number of bytes received; -1: one of them is wrong. */
static void *read_all(void *fd)
{
	char text[4096];
	long got = 0;

	await_ticks();
	for (ssize_t n; (n = read(*(int *)fd, text, sizeof(text))) > 0; got += n) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] != (char)('a' + (got + i) % 26))
				return (void *)-1L;
		}
	}
	return (void *)got;
}

static void write_to_slow_reader(void **state)
{
	int ends[2];
	void *got;

	assert_int_equal(pipe(ends), 0);
	start_ticks();
	pthread_t reader = start_reader(read_all, &ends[0]);
	FILE *file = stream_new(ends[1], true);

	assert_non_null(file);
	for (int i = 0; i < SIZE; i++)
		fputc('a' + i % 26, file);
	assert_false(ferror(file));
	assert_int_equal(fclose(file), 0);
	pthread_join(reader, &got);
	stop_ticks();
	assert_int_equal((long)got, SIZE);
	assert_int_equal(fcntl(ends[1], F_GETFD), -1);
	close(ends[0]);
}

static void *read_fifo(void *path)
{
	await_ticks();
	int fd = open(path, O_RDONLY);

	close(fd);
	return NULL;
}

static void open_of_a_fifo(void **state)
{
	char dir[] = "/tmp/test_stream.XXXXXX", path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	start_ticks();
	pthread_t reader = start_reader(read_fifo, path);
	int fd = stream_open(path, O_WRONLY, 0);

	assert_true(fd >= 0);
	close(fd);
	pthread_join(reader, NULL);
	asks_to_leave = 1;
	assert_int_equal(stream_open(path, O_WRONLY, 0), -EINTR);
	asks_to_leave = 0;
	stop_ticks();
	unlink(path);
	rmdir(dir);
}

static void errors(void **state)
{
	assert_null(stream_create("/nonexistent/x"));
	assert_int_equal(errno, ENOENT);
	FILE *file = stream_create("/dev/full");

	assert_non_null(file);
	fputs("text", file);
	assert_int_equal(fflush(file), EOF);
	assert_int_equal(errno, ENOSPC);
	fclose(file);
	file = stream_new(STDOUT_FILENO, false);
	assert_int_equal(fclose(file), 0);
	assert_true(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
}

static off_t cut(const char *path, const char *text, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
	off_t end = stream_cut_line(path);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, end);
	return end;
}

static void lines_are_whole(void **state)
{
	char path[] = "/tmp/ptmem-unit-XXXXXX", large[10000];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	memset(large, 'x', sizeof(large));
	assert_int_equal(cut(path, "one\ntwo", 7), 4);
	assert_int_equal(cut(path, "one\ntwo\n", 8), 8);
	assert_int_equal(cut(path, "one", 3), 0);
	assert_int_equal(cut(path, "", 0), 0);
	assert_int_equal(cut(path, large, sizeof(large)), 0);
	large[0] = large[4095 + 1000] = '\n';
	assert_int_equal(cut(path, large, sizeof(large)), 4096 + 1000);
	large[5095] = 'x';
	assert_int_equal(cut(path, large, sizeof(large)), 1);
	unlink(path);
	assert_int_equal(stream_cut_line(path), -1);
	assert_int_equal(stream_cut_line("/dev/null"), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_to_slow_reader),
		cmocka_unit_test(open_of_a_fifo),
		cmocka_unit_test(errors),
		cmocka_unit_test(lines_are_whole),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
