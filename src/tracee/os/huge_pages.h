/*
 * Transparent huge pages of a process's anonymous memory, and how much of them was never used: the
 * kernel gives a program that writes one byte 2 MiB of zeros.
 */
#ifndef PTMEM_TRACEE_OS_HUGE_PAGES_H
#define PTMEM_TRACEE_OS_HUGE_PAGES_H

#include <sys/types.h>

#include "base/types.h"

/* Bytes. */
struct huge_page_sums {
	uint64_t all;
	uint64_t read;  /* of all: of those it is known what they hold */
	uint64_t zeros; /* of those that were read: in small pages that hold only zeros */
};

/*
 * Reads huge pages of @pid, which may run, @most bytes of them. Before Linux 6.7 it is unknown
 * where they are, unless they fill a mapping: others are not read. 0 or -errno.
 */
int huge_pages_read(pid_t pid, uint64_t most, struct huge_page_sums *out);

#endif
