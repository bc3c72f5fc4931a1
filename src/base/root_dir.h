/*
 * The root directory of another process, if files have other names there: in a container, a chroot,
 * or another mount namespace. Kept open, so that its files can be found after the process has
 * ended. Symbolic links in it lead to files in it, as they do for that process.
 */
#ifndef PTMEM_BASE_ROOT_DIR_H
#define PTMEM_BASE_ROOT_DIR_H

#include <sys/types.h>

#include "base/types.h"

struct root_dir {
	uint32_t users;
	int fd;
	dev_t dev;
	ino_t ino;             /* of the directory */
	ino_t mounts;          /* of the mount namespace */
	/*
	 * In our view, as in /proc/PID/maps; "" for a container, whose root is that of a mount
	 * namespace
	 */
	char *prefix;
};

/*
 * The root of @pid; NULL if it is our own, or unknown. @known (may be NULL): the result if it is
 * the same directory. The caller releases it.
 */
struct root_dir *root_dir_of(pid_t pid, struct root_dir *known);
struct root_dir *root_dir_hold(struct root_dir *root);  /* may be NULL, as in the following */
void root_dir_release(struct root_dir *root);

/*
 * Opens file @path of @root for reading: a descriptor, or -errno; -EINVAL if it is not a regular
 * file. NULL = our own root.
 */
int root_dir_open(const struct root_dir *root, const char *path);

/* The name in @root of the file that /proc/PID/maps calls @path: the end of that, or all of it. */
const char *root_dir_name(const struct root_dir *root, const char *path);
/* Opens the file that /proc/PID/maps calls @path, which need not be in @root. */
int root_dir_open_mapped(const struct root_dir *root, const char *path);

#endif
