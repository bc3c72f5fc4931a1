/*
 * Files of ptmem itself: standard ones that were closed, streams that survive interrupted system
 * calls, and whether two names are the same file.
 */
#ifndef PTMEM_BASE_FILES_H
#define PTMEM_BASE_FILES_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/types.h"

/*
 * Handles standard input, output and error that were closed before ptmem started. Otherwise the
 * first files that we open would get their numbers, and messages would go into those.
 */

/*
 * Occupies those of the descriptors 0, 1 and 2 that are closed with a descriptor that can be
 * neither read nor written, so that their use still fails. Programs that we execute find them
 * closed again. main calls this first.
 */
void standard_files_hold(void);

/*
 * Streams that handle interrupted system calls. Our signal handlers interrupt system calls on
 * purpose, to wake up the loop. That would also break a write to a pipe with a slow reader, and the
 * open of a FIFO without a reader; stdio then discards its buffer. So code that writes while
 * signals are caught uses these.
 */

/*
 * Counts the symbolic links on @path, those of links included; the file need not exist. -EACCES:
 * one of them may not be followed, whatever fs.protected_symlinks says, since another user has put
 * it into a directory that everyone can write to, as /tmp.
 */
int path_check_links(const char *path, unsigned *links_out);

/*
 * Like open(2), but restarts after a signal unless that asked ptmem to leave, which must not wait
 * for the reader of a FIFO. Sets O_CLOEXEC and O_NOCTTY, and follows links by path_check_links.
 * Returns the descriptor or -errno.
 */
int stream_open(const char *path, int flags, mode_t mode);

/*
 * A buffered stream that writes to @fd; with @owns_fd fclose closes @fd, too. NULL with errno on
 * failure.
 */
FILE *stream_new(int fd, bool owns_fd);

/* Opens a file like fopen(path, "we"). NULL with errno on failure. */
FILE *stream_create(const char *path);

/* What a text that users write, as a list of limits, has at most. */
#define TEXT_FILE_MAX ((size_t)16 << 20)

/*
 * Like getline(3), but stops after *@left bytes of all calls, which it counts down: a device
 * without an end fills no memory.
 */
ssize_t stream_read_line(FILE *file, char **line, size_t *capacity, size_t *left);

/*
 * A file at @path that could not be written to its end: what follows its last whole line is cut
 * off. The bytes that remain; -1: it is no regular file, or was removed.
 */
off_t stream_cut_line(const char *path);

/*
 * Whether two names, or a name and a descriptor, refer to the same file through hard links,
 * symbolic links or different paths. A file that does not exist yet is identified by its directory
 * and its name.
 */

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

/*
 * The file in a directory of PATH that execvp(3) would execute for @name, which has no slash. NULL:
 * there is none. The caller frees it.
 */
char *program_find(const char *name);
/*
 * @name, a path from the directory of the program that runs here, if that can be executed; else
 * NULL. The caller frees it.
 */
char *program_beside(const char *name);

bool file_id_is_same(const struct file_id *a, const struct file_id *b);
/* The same for two paths. */
bool same_file(const char *a, const char *b);

#endif
