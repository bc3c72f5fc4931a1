/* Files whose names come from programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/proc.h"

/* Others are not even opened. */
static void test_only_regular(void **state)
{
	char directory[] = "/tmp/test_root_dir.XXXXXX", file[64], fifo[64], data[4];

	assert_non_null(mkdtemp(directory));
	snprintf(file, sizeof(file), "%s/file", directory);
	snprintf(fifo, sizeof(fifo), "%s/fifo", directory);
	FILE *f = fopen(file, "w");

	assert_true(f && fputs("text", f) >= 0 && fclose(f) == 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	int fd = root_dir_open(NULL, file);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, data, sizeof(data)), 4);
	assert_memory_equal(data, "text", 4);
	close(fd);
	assert_int_equal(root_dir_open(NULL, fifo), -EINVAL);
	assert_int_equal(root_dir_open(NULL, directory), -EINVAL);
	assert_int_equal(root_dir_open(NULL, "/dev/null"), -EINVAL);
	assert_int_equal(root_dir_open_mapped(NULL, "/dev/zero"), -EINVAL);
	unlink(file);
	unlink(fifo);
	assert_int_equal(root_dir_open(NULL, file), -ENOENT);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_regular)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
