/*
 * Whether two names, or a name and a descriptor, lead to one file: by hard links,
 * symbolic links and different paths. A file that is not there yet is known by its
 * directory and its name in that.
 */
#ifndef PTMEM_BASE_SAME_FILE_H
#define PTMEM_BASE_SAME_FILE_H

#include <sys/types.h>

#include "base/types.h"

struct file_id {
	dev_t device;
	ino_t inode;
	char *name;  /* of a file that is not there, in the directory @inode; else NULL; owned */
	bool is_known; /* else there is nothing to compare: no regular file, no directory */
};

/* Of what @path leads to; "-" is no file, nor are FIFOs and devices. */
void file_id_init(struct file_id *id, const char *path);
/* Of what descriptor @fd is. */
void file_id_init_fd(struct file_id *id, int fd);
void file_id_deinit(struct file_id *id);

bool file_id_is_same(const struct file_id *a, const struct file_id *b);
/* The same of two paths. */
bool same_file(const char *a, const char *b);

#endif
