/*
 * --trace-children-skip matches the path passed to execve, --trace-children-skip-by-arg every
 * argument, argv[0] included. If an option is repeated, the last value wins.
 */
#include "session/skip.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "base/wildcard.h"
#include "session/exec_info.h"

static bool has_matching_argument(const char *list, pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *arg = NULL;
	size_t size = 0;
	while (f && getdelim(&arg, &size, '\0', f) > 0) {
		if (wildcard_list_matches(list, arg))
			return true;
	}
	return false;
}

bool skip_exec(const struct options *o, pid_t pid)
{
	_cleanup_free_ char *name = o->children.skip ? exec_info_name(pid) : NULL;
	if (name && wildcard_list_matches(o->children.skip, name))
		return true;
	const char *arguments = o->children.skip_by_arg;
	return arguments && has_matching_argument(arguments, pid);
}
