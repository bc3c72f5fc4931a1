/* Inspects a process while it is profiled. */
#ifndef PTMEM_INSPECT_SESSION_H
#define PTMEM_INSPECT_SESSION_H

#include <stdio.h>

struct session;

/*
 * Reports the memory of the process of @s: to @path (JSON if it ends in .json), or as text to
 * @file if @path is NULL. Only while events are polled. -ESRCH and -ENOTSUP (malloc is not one
 * that is known): @file says so; another -errno: @path cannot be written.
 */
int inspect_session_write(struct session *s, const char *path, FILE *file);

/*
 * Compares the blocks that are live by what was counted with those that are in use in the heaps,
 * one by one, and prints to @file what differs. 0, or -errno as above.
 */
int inspect_session_check(struct session *s, FILE *file);

#endif
