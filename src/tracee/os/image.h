/*
 * Which program image a process runs: execve leaves its pid and its start time as they were.
 */
#ifndef PTMEM_TRACEE_OS_IMAGE_H
#define PTMEM_TRACEE_OS_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * *image_out is the same for a process and its forks, and another one after each execve, also of
 * the same program. Never 0. -ESRCH: there is no such process; -EACCES, -EPERM: it may not be
 * read (now).
 */
int image_read(pid_t pid, uint64_t *image_out);

#endif
