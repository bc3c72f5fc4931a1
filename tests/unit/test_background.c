/* Work in a copy of the process. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/own_process.h"

struct place {
	int ready[2], go[2]; /* pairs of sockets */
};

static int change(void *ctx)
{
	int *value = ctx;

	return --*value;
}

static void test_result(void **state)
{
	int value = -40, result = 0;
	const struct background_job job = {.work = change, .ctx = &value, .socket = -1};
	int fd = background_start(&job);

	assert_true(fd >= 0);
	assert_int_equal(background_result(fd, true, &result), 0);
	assert_int_equal(result, -41);
	assert_int_equal(value, -40);
}

static int wait_for_byte(void *ctx)
{
	const struct place *p = ctx;
	char c;

	return read(p->go[1], &c, 1) == 1 ? c : -EIO;
}

static void test_running(void **state)
{
	struct place p;
	int result = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p.go), 0);
	const struct background_job job = {.work = wait_for_byte, .ctx = &p, .socket = p.go[1]};
	int fd = background_start(&job);

	assert_true(fd >= 0);
	assert_int_equal(background_result(fd, false, &result), -EAGAIN);
	assert_int_equal(write(p.go[0], "x", 1), 1);
	assert_int_equal(background_result(fd, true, &result), 0);
	assert_int_equal(result, 'x');
	close(p.go[0]);
	close(p.go[1]);
}

static int die(void *ctx)
{
	return raise(SIGKILL);
}

static void test_killed(void **state)
{
	const struct background_job job = {.work = die, .socket = -1};
	int result = 0, fd = background_start(&job);

	assert_true(fd >= 0);
	assert_int_equal(background_result(fd, true, &result), 0);
	assert_int_equal(result, -ECHILD);
}

/* The copy keeps its socket; the peer of any other one notices when the original closes it. */
static void test_sockets(void **state)
{
	struct place p;
	int result = 0;
	char c;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p.go), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p.ready), 0);
	const struct background_job job = {.work = wait_for_byte, .ctx = &p, .socket = p.go[1]};
	int fd = background_start(&job);

	assert_true(fd >= 0);
	close(p.ready[1]);
	assert_int_equal(read(p.ready[0], &c, 1), 0);
	assert_int_equal(background_result(fd, false, &result), -EAGAIN);
	assert_int_equal(write(p.go[0], "y", 1), 1);
	assert_int_equal(background_result(fd, true, &result), 0);
	assert_int_equal(result, 'y');
	close(p.ready[0]);
	close(p.go[0]);
	close(p.go[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_result),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
