/* The reports of --leaks and --leak-check. */
#ifndef PTMEM_SESSION_INSPECT_LEAK_REPORT_H
#define PTMEM_SESSION_INSPECT_LEAK_REPORT_H

#include <stdio.h>

#include "base/types.h"

struct run;
struct session;

/* Reads the files of --suppressions. Not 0 after a message. */
int leak_report_open(struct run *run);

/*
 * Reports the live blocks of @s to where the options say, and adds lost bytes to the run's.
 * @is_running: its process runs on.
 */
void leak_report_finish(struct session *s, uint64_t time_ns, bool is_running);

/*
 * Reports the current live blocks of @s: to @path (JSON if it ends in .json), or as text to @file
 * if @path is NULL. Call it only while events are polled. -ENOTSUP: neither --leaks nor
 * --leak-check was given; -ESRCH: the process is gone, and @s may be, too; another -errno: @path
 * cannot be written.
 */
int leak_report_write(struct session *s, const char *path, FILE *file);

#endif
