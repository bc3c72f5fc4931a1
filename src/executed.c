/*
 * The name that execve got stands in the new program's memory, where the auxiliary
 * vector points; /proc/PID/exe would name a script's interpreter instead. The kernel
 * gives the interpreter of a script these arguments:
 *
 *	INTERPRETER [ITS ARGUMENT] SCRIPT ARGUMENT...
 *
 * once more in front for each interpreter that is a script itself.
 */
#include "executed.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/vec.h"

#define NAME_SIZE 4096

static uint64_t name_address(pid_t pid)
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
char *executed_name(pid_t pid)
{
	char name[NAME_SIZE];
	uint64_t addr = name_address(pid);
	struct iovec local = {name, NAME_SIZE - 1},
		     remote = {(void *)(uintptr_t)addr, NAME_SIZE - 1};
	if (!addr)
		return NULL;
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	while (n < 0 && remote.iov_len > 1) {
		/* up to the end of the page: what lies behind is not mapped */
		remote.iov_len = MIN(remote.iov_len - 1, PAGE_SIZE_MIN - addr % PAGE_SIZE_MIN);
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (n < 0)
			return NULL;
	}
	name[n > 0 ? n : 0] = '\0';
	return n > 0 ? xstrdup(name) : NULL;
}

/* Whether the file @name, as @pid sees it, begins as a script does. */
static bool is_script(pid_t pid, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", *name == '/' ? "root" : "cwd", name);
	_cleanup_fclose_ FILE *f = proc_open(pid, path);
	return f && getc(f) == '#' && getc(f) == '!';
}

static void add_word(char **text, char *word)
{
	for (char *s = word; *s; s++)
		*s = *s == '\n' ? ' ' : *s;
	char *before = *text;
	*text = before ? xasprintf("%s %s", before, word) : xstrdup(word);
	free(before);
}

char *executed_command(pid_t pid, bool is_fresh)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *line = NULL, *name = is_fresh ? executed_name(pid) : NULL;
	bool is_before = name && is_script(pid, name);
	char *text = NULL;
	size_t size = 0;
	for (unsigned i = 0; f && getdelim(&line, &size, '\0', f) > 0; i++) {
		is_before = is_before && !(i > 0 && strcmp(line, name) == 0);
		if (!is_before)
			add_word(&text, i == 0 && name ? name : line);
	}
	return text ? text : xstrdup(name ? name : "");
}
