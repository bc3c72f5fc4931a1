/*
 * Whether two names, or a name and a descriptor, refer to the same file through hard links,
 * symbolic links or different paths. A file that does not exist yet is identified by its directory
 * and its name.
 */
#ifndef PTMEM_BASE_SAME_FILE_H
#define PTMEM_BASE_SAME_FILE_H

#include <sys/types.h>

#include "base/types.h"

struct file_id {
	dev_t device;
	ino_t inode;
	char *name;  /* base name of a file that does not exist, in directory @inode; else NULL */
	bool is_known; /* false: neither a regular file nor a directory, so nothing to compare */
};

/* Identifies the file at @path. "-", FIFOs and devices are not files. */
void file_id_init(struct file_id *id, const char *path);
/* Identifies the file open as @fd. */
void file_id_init_fd(struct file_id *id, int fd);
void file_id_deinit(struct file_id *id);

bool file_id_is_same(const struct file_id *a, const struct file_id *b);
/* The same for two paths. */
bool same_file(const char *a, const char *b);

#endif
