/* The reports of --leaks and --leak-check. */
#ifndef PTMEM_LEAK_REPORT_H
#define PTMEM_LEAK_REPORT_H

#include <stdio.h>

#include "base/types.h"

struct session;

/* Reports the live blocks of @s where the options say; lost bytes are added to the run's. */
void leak_report_finish(struct session *s, uint64_t time_ns);

/*
 * Reports the blocks of @s that are live now: to @path (JSON if it ends in .json), or as text to
 * @file if @path is NULL. Only while events are polled. -ENOTSUP: neither --leaks nor --leak-check
 * was given; -ESRCH: the process is gone, @s may be too; another -errno: @path cannot be written.
 */
int leak_report_write(struct session *s, const char *path, FILE *file);

#endif
