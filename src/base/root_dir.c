/*
 * /proc/PID/maps prints names in our own root directory, or if the file is not there, in the root
 * of the mount namespace that has it. A process after chroot(2) has another root, so
 *
 *	/proc/PID/root   /srv/jail
 *	/proc/PID/maps   /srv/jail/lib/libc.so.6   is /lib/libc.so.6 in its root
 *	                 /usr/bin/server           was opened before the chroot; it is found by
 *	                                           leaving the root through "..", which only the
 *	                                           process itself may not do
 */
#include "base/root_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"

#define FLAGS (O_PATH | O_CLOEXEC)

static bool get_stat(pid_t pid, const char *name, struct stat *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return stat(path, out) == 0;
}

/* What identifies the view of the file system that @pid has. */
static bool identify(pid_t pid, struct root_dir *out)
{
	struct stat root, mounts;

	if (!get_stat(pid, "root", &root) || !get_stat(pid, "ns/mnt", &mounts))
		return false;
	out->dev = root.st_dev;
	out->ino = root.st_ino;
	out->mounts = mounts.st_ino;
	return true;
}

static bool is_same(const struct root_dir *a, const struct root_dir *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->mounts == b->mounts;
}

struct root_dir *root_dir_of(pid_t pid, struct root_dir *known)
{
	struct root_dir its = {.users = 1}, ours;
	char path[64];

	if (!identify(pid, &its) || !identify(getpid(), &ours) || is_same(&its, &ours))
		return NULL;
	if (known && is_same(&its, known))
		return root_dir_hold(known);
	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	its.fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (its.fd < 0)
		return NULL;
	its.prefix = proc_read_link(pid, "root");
	if (!its.prefix || strcmp(its.prefix, "/") == 0) {
		free(its.prefix);
		its.prefix = xstrdup("");
	}
	return xmemdup(&its, sizeof(its));
}

struct root_dir *root_dir_hold(struct root_dir *root)
{
	if (root)
		root->users++;
	return root;
}

void root_dir_release(struct root_dir *root)
{
	if (!root || --root->users > 0)
		return;
	close(root->fd);
	free(root->prefix);
	free(root);
}

/*
 * Opens for reading what @found, which open(2) with FLAGS has returned, refers to, and closes it.
 * Names come from programs: one of a device must not be opened, as that may wait, rewind a tape or
 * start a watchdog.
 */
static int open_regular(int found)
{
	_cleanup_close_ int file = found;
	struct stat st;
	char link[32];

	if (file < 0 || fstat(file, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	int fd = open(link, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int root_dir_open(const struct root_dir *root, const char *path)
{
	const struct open_how how = {.flags = FLAGS,
				     .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	if (!root)
		return open_regular(open(path, FLAGS));
	long fd = syscall(SYS_openat2, root->fd, path, &how, sizeof(how));
	/* before Linux 5.6, and in containers whose filter does not know it */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root->fd, path + strspn(path, "/"), FLAGS);
	return open_regular((int)fd);
}

/* Whether @path is below the directory @prefix. */
static bool is_below(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) == 0 && path[n] == '/';
}

const char *root_dir_name(const struct root_dir *root, const char *path)
{
	return root && is_below(path, root->prefix) ? path + strlen(root->prefix) : path;
}

static size_t count_of(const char *text, char c)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

int root_dir_open_mapped(const struct root_dir *root, const char *path)
{
	if (!root || is_below(path, root->prefix))
		return root_dir_open(root, root_dir_name(root, path));
	size_t depth = count_of(root->prefix, '/');
	_cleanup_free_ char *outside = xmalloc(3 * depth + strlen(path) + 1);

	for (size_t i = 0; i < depth; i++)
		memcpy(outside + 3 * i, "../", 3);
	strcpy(outside + 3 * depth, path + strspn(path, "/"));
	return open_regular(openat(root->fd, outside, FLAGS));
}
