/* Names, units and control groups of --follow, and what a control group says about a process. */
#include "live/follow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/elf_marker.h"
#include "base/proc.h"

static void test_patterns(void **state)
{
	const char *redis = "0::/system.slice/redis.service\n", *pod = "0::/kube.slice/a/b\n";
	const char *mixed = "4:cpu,memory:/m/x.slice\n1:name=systemd:/s\n0::/\n";

	assert_true(process_match("redis", "redis", redis));
	assert_true(process_match("r*s", "redis", NULL));
	assert_false(process_match("redi", "redis", redis));
	assert_false(process_match("redis", "redis2", redis));
	assert_true(process_match("redis.service", "x", redis));
	assert_false(process_match("dis.service", "x", redis));
	assert_false(process_match("redis.service", "redis.service", NULL));
	assert_true(process_match("system.slice", "x", redis));
	assert_false(process_match("system.slice", "x", pod));
	assert_true(process_match(".service", ".service", NULL));
	assert_true(process_match("/kube.slice", "x", pod));
	assert_true(process_match("/kube.slice/", "x", pod));
	assert_true(process_match("/kube.slice/a/b", "x", pod));
	assert_false(process_match("/kube.slice/a/b/c", "x", pod));
	assert_false(process_match("/kube", "x", pod));
	assert_false(process_match("/kube.slice", "x", NULL));
	assert_true(process_match("/", "x", pod));
	assert_true(process_match("/m", "x", mixed));
	assert_true(process_match("/m/x.slice", "x", mixed));
	assert_true(process_match("x.slice", "x", mixed));
	assert_false(process_match("x.slice\n1:name=systemd:", "x", mixed));
	assert_false(process_match("/m/x.slice\n", "x", mixed));
	assert_true(process_match("/s", "x", mixed));
	assert_false(process_match("/x", "x", mixed));
	assert_false(process_match("memory", "x", mixed));
}

static void expect_path(const char *text, const char *path)
{
	_cleanup_free_ char *found = cgroup_parse(text);

	if (path)
		assert_string_equal(found, path);
	else
		assert_null(found);
}

static void test_parse(void **state)
{
	expect_path("0::/a/b\n", "/a/b");
	expect_path("0::/a:b\n", "/a:b");
	expect_path("0::/", "/");
	expect_path("5:cpu:/c\n1:name=systemd:/s\n0::/u\n", "/u");
	expect_path("5:cpu:/c\n1:name=systemd:/s\n0::/\n", "/s");
	expect_path("5:cpu:/c\n4:memory:/m\n", "/m");
	expect_path("4:memory:/m\n0::/\n", "/m");
	expect_path("5:cpu:/c\n4:cpuset,memory,pids:/m\n1:name=systemd:/s\n0::/\n", "/m");
	expect_path("5:cpu:/c\n4:memory:/\n1:name=systemd:/\n0::/\n", "/c");
	expect_path("5:cpu:/\n0::/\n", "/");
	expect_path("", NULL);
	expect_path("\n\n:\n::\n0:\n0::\n0::a\n", NULL);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void expect_container(const char *path, const char *id)
{
	char found[CONTAINER_ID_SIZE];

	cgroup_container(path, found);
	assert_string_equal(found, id);
}

static void test_container(void **state)
{
	expect_container("/system.slice/docker-" ID ".scope", ID);
	expect_container("/docker/" ID, ID);
	expect_container("/docker/" ID "/docker/f" ID, ID);
	expect_container("/kubepods.slice/kubepods-pod0f_1.slice/cri-containerd-" ID ".scope/init", ID);
	expect_container("/a/" ID "0", "");
	expect_container("/user.slice", "");
	expect_container("", "");
}

/* This very process, by its name, and by that of its file, which is too long for a name. */
static void test_own(void **state)
{
	const char *const by_name[] = {"no such", "test_of_a_name"}, *const by_file[] = {"test_process_match"};
	char comm[PROC_COMM_SIZE];

	assert_true(process_matches(getpid(), by_file, 1));
	prctl(PR_SET_NAME, "test_of_a_name");
	proc_read_comm(getpid(), comm);
	assert_string_equal(comm, "test_of_a_name");
	assert_true(process_matches(getpid(), by_name, 2));
	assert_false(process_matches(getpid(), by_name, 1));
	assert_false(process_matches(getpid(), by_file, 1));
	prctl(PR_SET_NAME, "a\n\n");
	proc_read_comm(getpid(), comm);
	assert_string_equal(comm, "a\n\n");
	assert_true(elf_marker_is_in(getpid()));
	assert_false(elf_marker_is_in(1));
	proc_read_comm(INT32_MAX, comm);
	assert_string_equal(comm, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
