/*
 * Streams that write all. Our signal handlers interrupt system calls on purpose (the loop must
 * wake), which breaks a write to a pipe whose reader is slow, and the open of a FIFO without a
 * reader; stdio then forgets what it had in its buffer. So what ptmem writes while it catches
 * signals goes through these.
 */
#ifndef PTMEM_BASE_STREAM_H
#define PTMEM_BASE_STREAM_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * As open(2), and again when a signal interrupts it, unless that asked ptmem to leave: such a
 * signal need not wait for the reader of a FIFO. The descriptor, closed by an exec and never a
 * controlling terminal, or -errno.
 */
int stream_open(const char *path, int flags, mode_t mode);

/* A buffered stream that writes to @fd; fclose closes that, too, if it @owns_fd. NULL and errno. */
FILE *stream_new(int fd, bool owns_fd);

/* A file as fopen(path, "we") makes it. NULL and errno. */
FILE *stream_create(const char *path);

#endif
