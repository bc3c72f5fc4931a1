/*
 * The name that execve got stands in the new program's memory, where the auxiliary
 * vector points; /proc/PID/exe would name a script's interpreter instead.
 */
#include "skip.h"

#include <sys/auxv.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "base/wildcard.h"

#define NAME_SIZE 4096

static uint64_t executed_name_address(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "auxv");
	uint64_t entry[2]; /* type, value */
	while (f && fread(entry, sizeof(entry), 1, f) == 1) {
		if (entry[0] == AT_EXECFN)
			return entry[1];
	}
	return 0;
}

/* The name lies near the end of the stack, so fewer bytes than asked for may be there. */
static bool executed_name(pid_t pid, char name[NAME_SIZE])
{
	uint64_t addr = executed_name_address(pid);
	struct iovec local = {name, NAME_SIZE - 1},
		     remote = {(void *)(uintptr_t)addr, NAME_SIZE - 1};
	if (!addr)
		return false;
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	while (n < 0 && remote.iov_len > 1) {
		/* up to the end of the page: what lies behind is not mapped */
		remote.iov_len = MIN(remote.iov_len - 1, PAGE_SIZE_MIN - addr % PAGE_SIZE_MIN);
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (n < 0)
			return false;
	}
	name[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static bool matches(const struct option_strings *lists, const char *text)
{
	for (size_t i = 0; i < lists->count; i++) {
		if (wildcard_list_matches(lists->data[i], text))
			return true;
	}
	return false;
}

static bool has_matching_argument(const struct option_strings *lists, pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *arg = NULL;
	size_t size = 0;
	while (f && getdelim(&arg, &size, '\0', f) > 0) {
		if (matches(lists, arg))
			return true;
	}
	return false;
}

bool skip_exec(const struct options *o, pid_t pid)
{
	char name[NAME_SIZE];
	if (o->trace_children_skip.count && executed_name(pid, name) &&
	    matches(&o->trace_children_skip, name))
		return true;
	return o->trace_children_skip_by_arg.count &&
	       has_matching_argument(&o->trace_children_skip_by_arg, pid);
}
