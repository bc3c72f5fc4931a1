/* Memory of cgroups, with directories as the kernel would make them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cgroup.h"
#include "base/cleanup.h"

static char top[] = "/tmp/ptmem-cgroup.XXXXXX";

static void make_directory(const char *path)
{
	_cleanup_free_ char *whole = xasprintf("%s/%s", top, path);

	assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
}

static void write_file(const char *path, const char *text)
{
	_cleanup_free_ char *whole = xasprintf("%s/%s", top, path);
	FILE *f = fopen(whole, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_tree(void **state)
{
	static const char *const directories[] = {"v2", "v2/a", "v2/a/b", "v1", "v1/a", "v1/docker"};

	assert_non_null(mkdtemp(top));
	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		make_directory(directories[i]);
	write_file("v2/a/memory.max", "50000000\n");
	write_file("v2/a/memory.current", "45000000\n");
	write_file("v2/a/memory.stat", "anon 1\ninactive_file 3000000\nactive_file 700000\n");
	write_file("v2/a/b/memory.max", "max\n");
	write_file("v2/a/b/memory.events", "low 5\nhigh 2\nmax 30\noom 1\noom_kill 1\n");
	write_file("v2/a/b/memory.pressure",
		   "some avg10=12.05 avg60=0.30 avg300=0.10 total=77\n"
		   "full avg10=3.00 avg60=0.00 avg300=0.00 total=5\n");
	write_file("v1/a/memory.stat", "cache 1\nhierarchical_memory_limit 70000000\ntotal_rss 2\n"
		   "inactive_file 5\ntotal_inactive_file 600000\n");
	write_file("v1/a/memory.usage_in_bytes", "10000000\n");
	write_file("v1/a/memory.failcnt", "17\n");
	return 0;
}

static int remove_tree(void **state)
{
	_cleanup_free_ char *command = xasprintf("rm -r %s", top);

	return system(command);
}

/* @root1, @root2: what is mounted of each hierarchy. */
static void find(const char *cgroup, const char *root1, const char *root2, struct memory_cgroup *out)
{
	_cleanup_free_ char *mounts = xasprintf(
		"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"30 22 0:28 / %s/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		"%s%s%s%s%s"
		"%s%s%s%s%s",
		top, root1 ? "35 22 0:32 " : "", root1 ? root1 : "", root1 ? " " : "",
		root1 ? top : "", root1 ? "/v1 rw,nosuid shared:9 - cgroup cgroup rw,memory\n" : "",
		root2 ? "41 22 0:38 " : "", root2 ? root2 : "", root2 ? " " : "", root2 ? top : "",
		root2 ? "/v2 rw - cgroup2 cgroup2 rw,nsdelegate\n" : "");

	memory_cgroup_find(cgroup, mounts, out);
}

static void test_version_2(void **state)
{
	struct memory_cgroup c;
	double pressure;
	uint64_t hits;

	find("0::/a/b\n", NULL, "/", &c);
	assert_null(c.memory);
	assert_int_equal(memory_cgroup_limit(&c), 50000000); /* its parent's */
	assert_int_equal(memory_cgroup_left(&c), 8000000);
	assert_true(memory_cgroup_limit_hits(&c, &hits));
	assert_int_equal(hits, 33);
	assert_true(memory_cgroup_pressure(&c, &pressure));
	assert_true(pressure == 12.05);
	memory_cgroup_deinit(&c);
}

static void test_version_1(void **state)
{
	struct memory_cgroup c;
	double pressure;
	uint64_t hits;

	find("7:cpu,cpuacct:/x\n4:memory:/a\n1:name=systemd:/y\n", "/", NULL, &c);
	assert_null(c.unified);
	assert_int_equal(memory_cgroup_limit(&c), 70000000);
	assert_int_equal(memory_cgroup_left(&c), 60600000);
	assert_true(memory_cgroup_limit_hits(&c, &hits));
	assert_int_equal(hits, 17);
	assert_false(memory_cgroup_pressure(&c, &pressure));
	memory_cgroup_deinit(&c);
}

/* The memory controller is in version 1, the pressure in version 2. */
static void test_both(void **state)
{
	struct memory_cgroup c;
	double pressure;
	uint64_t hits;

	find("4:memory:/a\n0::/a\n", "/", "/", &c);
	assert_int_equal(memory_cgroup_limit(&c), 50000000);
	assert_true(memory_cgroup_limit_hits(&c, &hits));
	assert_int_equal(hits, 17);
	assert_false(memory_cgroup_pressure(&c, &pressure));
	memory_cgroup_deinit(&c);
}

/* A container sees its cgroup's directory as the top, or only that. */
static void test_mounted_part(void **state)
{
	struct memory_cgroup c;

	find("4:memory:/docker/7\n", "/docker/7", NULL, &c);
	assert_non_null(c.memory);
	assert_string_equal(c.memory + strlen(top), "/v1");
	memory_cgroup_deinit(&c);
	find("4:memory:/docker/7/a\n", "/docker/7", NULL, &c);
	assert_non_null(c.memory);
	assert_string_equal(c.memory + strlen(top), "/v1/a");
	memory_cgroup_deinit(&c);
	find("4:memory:/docker/77\n", "/docker/7", NULL, &c);
	assert_null(c.memory);
	memory_cgroup_deinit(&c);
}

static void test_none(void **state)
{
	static const char *const texts[] = {
		"", "0::", "0::/missing\n", "0::/../a\n", "4:memory", "x", ":::\n", "4:memoryx:/a\n"};
	struct memory_cgroup c;
	double pressure;
	uint64_t hits;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		find(texts[i], "/", i == 1 ? NULL : "/", &c);
		assert_null(c.memory);
		assert_int_equal(memory_cgroup_limit(&c), UINT64_MAX);
		assert_int_equal(memory_cgroup_left(&c), UINT64_MAX);
		assert_false(memory_cgroup_limit_hits(&c, &hits));
		assert_false(memory_cgroup_pressure(&c, &pressure));
		memory_cgroup_deinit(&c);
	}
	memory_cgroup_find(NULL, NULL, &c);
	assert_null(c.unified);
	memory_cgroup_deinit(&c);
}

/* The directory of this process, if there is one, has its limit. */
static void test_own(void **state)
{
	struct memory_cgroup c;

	memory_cgroup_find_of(getpid(), &c);
	assert_true(memory_cgroup_limit(&c) > 0);
	memory_cgroup_deinit(&c);
}

/* The parts of either version add up to all; what statistics have beyond that is said. */
static void usage_adds_up(void **state)
{
	struct memory_cgroup_usage u;
	struct memory_cgroup c = {0};
	uint64_t sum;

	assert_false(memory_cgroup_usage(&c, 0, &u));
	c.unified = xasprintf("%s/v2/a/b", top);
	c.unified_top = xasprintf("%s/v2", top);
	assert_false(memory_cgroup_usage(&c, 0, &u));
	write_file("v2/a/b/memory.current", "1000000\n");
	write_file("v2/a/b/memory.stat", "anon 400000\nfile 300000\nkernel_stack 16000\npagetables 8000\n"
		   "percpu 1000\nsock 5000\nshmem 100000\nslab 50000\nslab_reclaimable 20000\n");
	assert_true(memory_cgroup_usage(&c, 150000, &u));
	const uint64_t wanted[] = {150000, 250000, 200000, 100000, 50000, 5000, 8000, 16000, 1000, 220000};

	assert_int_equal(u.count, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < u.count; i++)
		assert_int_equal(u.part[i].bytes, wanted[i]);
	assert_int_equal(u.all, 1000000);
	assert_int_equal(u.excess, 0);
	write_file("v2/a/b/memory.current", "500000\n");
	assert_true(memory_cgroup_usage(&c, 450000, &u));
	sum = 0;
	for (size_t i = 0; i < u.count; i++)
		sum += u.part[i].bytes;
	assert_int_equal(sum, 500000);
	assert_int_equal(u.part[0].bytes, 400000);
	assert_int_equal(u.excess, 280000);
	memory_cgroup_deinit(&c);
	c.memory = xasprintf("%s/v1/a", top);
	write_file("v1/a/memory.usage_in_bytes", "900000\n");
	write_file("v1/a/memory.stat", "cache 1\ntotal_cache 300000\ntotal_rss 500000\ntotal_shmem 100000\n"
		   "hierarchical_memory_limit 70000000\n");
	write_file("v1/a/memory.kmem.usage_in_bytes", "40000\n");
	assert_true(memory_cgroup_usage(&c, 1000, &u));
	assert_int_equal(u.part[1].bytes, 499000);
	assert_int_equal(u.part[4].bytes, 40000);
	assert_int_equal(u.part[5].bytes, 60000);
	assert_int_equal(u.count, 6);
	memory_cgroup_deinit(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_mounted_part),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_own),
		cmocka_unit_test(usage_adds_up),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
