/* What --inspect writes: text for people, JSON for programs. */
#ifndef PTMEM_OUTPUT_INSPECT_REPORT_H
#define PTMEM_OUTPUT_INSPECT_REPORT_H

#include <stdio.h>

#include "inspect/inspect.h"

struct inspect_title {
	uint32_t pid;
	const char *command;
	uint64_t rss, swap;        /* VmRSS and VmSwap in /proc/PID/status, bytes */
	unsigned glibc_major, glibc_minor; /* 0 = unknown */
	bool has_malloc;           /* its malloc is glibc's, and was used */
	uint32_t inside;           /* threads that stayed in the middle of malloc */
	uint32_t moments;          /* in which those that were in it ran to leave it */
	uint64_t stopped_ns;       /* during that */
};

void inspect_report_print(FILE *file, const struct inspect_title *t,
			  const struct inspect_report *r);

/*
 * One object. Bytes; "resident" and "swapped" of rows add up to those of "memory". Pages are those
 * that are resident or swapped out.
 */
void inspect_report_write_json(FILE *file, const struct inspect_title *t,
			       const struct inspect_report *r);

#endif
