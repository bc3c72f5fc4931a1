/*
 * Streams that handle interrupted system calls. Our signal handlers interrupt system calls on
 * purpose, to wake up the loop. That would also break a write to a pipe with a slow reader, and the
 * open of a FIFO without a reader; stdio then discards its buffer. So code that writes while
 * signals are caught uses these.
 */
#ifndef PTMEM_BASE_STREAM_H
#define PTMEM_BASE_STREAM_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Like open(2), but restarts after a signal unless that asked ptmem to leave, which must not wait
 * for the reader of a FIFO. Sets O_CLOEXEC and O_NOCTTY. Returns the descriptor or -errno.
 */
int stream_open(const char *path, int flags, mode_t mode);

/*
 * A buffered stream that writes to @fd; with @owns_fd fclose closes @fd, too. NULL with errno on
 * failure.
 */
FILE *stream_new(int fd, bool owns_fd);

/* Opens a file like fopen(path, "we"). NULL with errno on failure. */
FILE *stream_create(const char *path);

/*
 * A file at @path that could not be written to its end: what follows its last whole line is cut
 * off. The bytes that remain; -1: it is no regular file, or was removed.
 */
off_t stream_cut_line(const char *path);

#endif
