/* What is known of a program that was executed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "session/exec_info.h"

#define LIMIT 200 /* seconds */

/* A program may name any file: a FIFO without a writer is not waited for. */
static void test_fifo(void **state)
{
	char directory[] = "/tmp/test_exec_info.XXXXXX";
	char *name = (char *)(uintptr_t)getauxval(AT_EXECFN);

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	assert_int_equal(mkfifo("f", 0600), 0);
	strcpy(name, "f");
	alarm(LIMIT);
	char *command = exec_info_command(getpid(), true);

	alarm(0);
	unlink("f");
	assert_int_equal(chdir("/"), 0);
	rmdir(directory);
	assert_string_equal(command, "f");
	free(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_fifo)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
