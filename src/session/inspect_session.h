/* Inspects a process while it is profiled. */
#ifndef PTMEM_INSPECT_SESSION_H
#define PTMEM_INSPECT_SESSION_H

#include <stdio.h>

struct session;

/*
 * Reports the memory of the process of @s: to @path (JSON if it ends in .json), or as text to @file
 * if @path is NULL. Call it only while events are polled. -ESRCH and -ENOTSUP (unsupported malloc)
 * are explained in @file; another -errno: @path cannot be written.
 */
int inspect_session_write(struct session *s, const char *path, FILE *file);

/*
 * Compares the live blocks of the profile with the blocks in use in the heaps, and prints the
 * differences to @file. 0, or -errno as above.
 */
int inspect_session_check(struct session *s, FILE *file);

#endif
