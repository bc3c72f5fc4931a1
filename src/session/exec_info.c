/*
 * The path passed to execve is in the new program's memory, where the auxiliary vector
 * points; for a script, /proc/PID/exe names the interpreter instead. The kernel passes
 * these arguments to the interpreter of a script:
 *
 *	INTERPRETER [ITS ARGUMENT] SCRIPT ARGUMENT...
 *
 * with one more level in front for each interpreter that is itself a script.
 */
#include "session/exec_info.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "session/run.h"

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

/*
 * The path that was passed to execve: for a script its own, not the interpreter's. NULL if it
 * cannot be read. The caller frees it.
 * The name is near the end of the stack, so the mapping may end within the requested bytes.
 */
static char *exec_info_name(pid_t pid)
{
	char name[NAME_SIZE];
	uint64_t addr = name_address(pid);
	struct iovec local = {name, NAME_SIZE - 1},
		     remote = {(void *)(uintptr_t)addr, NAME_SIZE - 1};
	if (!addr)
		return NULL;
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	while (n < 0 && remote.iov_len > 1) {
		/* up to the end of the page: the next one is not mapped */
		remote.iov_len = MIN(remote.iov_len - 1, PAGE_SIZE_MIN - addr % PAGE_SIZE_MIN);
		n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
		if (n < 0)
			return NULL;
	}
	name[n > 0 ? n : 0] = '\0';
	return n > 0 ? xstrdup(name) : NULL;
}

/* Whether the file @name, in the view of @pid, starts like a script. It may be any file by now. */
static bool is_script(pid_t pid, const char *name)
{
	_cleanup_free_ char *path =
		xasprintf("/proc/%d/%s/%s", (int)pid, *name == '/' ? "root" : "cwd", name);
	_cleanup_close_ int fd = root_dir_open(NULL, path);
	char head[2];
	return fd >= 0 && read(fd, head, sizeof(head)) == sizeof(head) &&
	       memcmp(head, "#!", sizeof(head)) == 0;
}

char *exec_info_link(pid_t pid, ino_t *file_out)
{
	_cleanup_free_ char *name = exec_info_name(pid), *path = NULL;
	char exe[64];
	struct stat program, link;

	if (!name)
		return NULL;
	/* beyond symbolic links that lead out of its root it is another file, most likely */
	path = xasprintf("/proc/%d/%s/%s", (int)pid, *name == '/' ? "root" : "cwd", name);
	snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
	if (stat(exe, &program) != 0 || stat(path, &link) != 0 ||
	    program.st_ino != link.st_ino || program.st_dev != link.st_dev)
		return NULL;
	*file_out = program.st_ino;
	return xstrdup(text_base_name(name));
}

static void add_word(char **text, char *word)
{
	for (char *s = word; *s; s++)
		*s = *s == '\n' ? ' ' : *s;
	char *before = *text;
	*text = before ? xasprintf("%s %s", before, word) : xstrdup(word);
	free(before);
}

/*
 * Removes the padding from a title that a process wrote over its arguments: one word followed by
 * spaces or empty words. A single space or empty word may be an argument.
 */
static void trim_title(char *text, unsigned words)
{
	size_t end = strlen(text), length = end;
	while (length > 0 && text[length - 1] == ' ')
		length--;
	if (words == 1 && length > 0 && end - length > 1)
		text[length] = '\0';
}

char *exec_info_command(pid_t pid, bool is_fresh)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "cmdline");
	_cleanup_free_ char *line = NULL, *name = is_fresh ? exec_info_name(pid) : NULL;
	bool is_before = name && is_script(pid, name);
	char *text = NULL;
	size_t size = 0;
	unsigned words = 0; /* non-empty ones */
	for (unsigned i = 0; f && getdelim(&line, &size, '\0', f) > 0; i++) {
		words += *line != '\0';
		is_before = is_before && !(i > 0 && strcmp(line, name) == 0);
		if (!is_before)
			add_word(&text, i == 0 && name ? name : line);
	}
	if (text && !is_fresh)
		trim_title(text, words);
	return text ? text : xstrdup(name ? name : "");
}

/*
 * --trace-children-skip matches the path passed to execve, --trace-children-skip-by-arg every
 * argument, argv[0] included. If an option is repeated, the last value wins.
 */

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

bool skip_exec(void *ctx, pid_t pid)
{
	const struct options *o = ((struct run *)ctx)->options;
	_cleanup_free_ char *name = o->children.skip ? exec_info_name(pid) : NULL;
	if (name && wildcard_list_matches(o->children.skip, name))
		return true;
	const char *arguments = o->children.skip_by_arg;
	return arguments && has_matching_argument(arguments, pid);
}
