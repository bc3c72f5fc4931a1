/* Processes that a target creates. */
#ifndef CHILDREN_H
#define CHILDREN_H

#include "truth.h"

#include <sys/wait.h>

static void expect_exit(pid_t pid, int status_wanted)
{
	int status;

	CHECK(pid > 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == status_wanted);
}

#endif
