/* Identifies the program image that a process runs: execve changes neither pid nor start time. */
#ifndef PTMEM_TRACEE_OS_IMAGE_H
#define PTMEM_TRACEE_OS_IMAGE_H

#include <stdint.h>
#include <sys/types.h>

/*
 * *image_out is equal for a process and its forks, and changes with each execve, even of the same
 * program. Never 0. -ESRCH: there is no such process; -EACCES, -EPERM: it may not be read (now).
 */
int image_read(pid_t pid, uint64_t *image_out);

#endif
