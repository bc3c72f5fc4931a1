/* See process_match.h. Files of /proc are read only if a pattern needs them. */
#include "live/process_match.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/wildcard.h"

static bool is_unit(const char *pattern)
{
	static const char *const ends[] = {".service", ".scope", ".slice"};
	size_t n = strlen(pattern);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t k = strlen(ends[i]);

		if (n > k && strcmp(pattern + n - k, ends[i]) == 0)
			return true;
	}
	return false;
}

/* Whether it is compared with names of processes, not with their control groups. */
static bool is_name_pattern(const char *pattern)
{
	return *pattern != '/' && !is_unit(pattern);
}

bool process_match(const char *pattern, const char *comm, const char *cgroup)
{
	if (is_name_pattern(pattern))
		return wildcard_matches(pattern, strlen(pattern), comm);
	if (!cgroup)
		return false;
	return *pattern == '/' ? cgroup_is_within(cgroup, pattern) :
				 cgroup_has_component(cgroup, pattern);
}

static bool matches_file(pid_t pid, const char *pattern)
{
	_cleanup_free_ char *exe = proc_read_link(proc_find_reader(pid), "exe");
	const char *slash = exe ? strrchr(exe, '/') : NULL;

	return slash && wildcard_matches(pattern, strlen(pattern), slash + 1);
}

bool process_matches(pid_t pid, const char *const *patterns, size_t count)
{
	char comm[PROC_COMM_SIZE] = "";
	_cleanup_free_ char *cgroup = NULL;

	for (size_t i = 0; i < count; i++) {
		bool is_name = is_name_pattern(patterns[i]);

		if (is_name && !*comm)
			proc_read_comm(pid, comm);
		else if (!is_name && !cgroup)
			cgroup = cgroup_read_text(pid);
		if (process_match(patterns[i], comm, cgroup))
			return true;
		if (is_name && strlen(comm) == PROC_COMM_SIZE - 1 && matches_file(pid, patterns[i]))
			return true;
	}
	return false;
}
