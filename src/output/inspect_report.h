/* The report of --inspect: text, or JSON for programs. */
#ifndef PTMEM_OUTPUT_INSPECT_REPORT_H
#define PTMEM_OUTPUT_INSPECT_REPORT_H

#include <stdio.h>

#include "inspect/inspect.h"

/* A core file: it does not record what was resident or swapped out. */
struct inspect_core_title {
	const char *path;
	uint64_t bytes;            /* of memory in it; those in pages of zeros are in no row */
	uint64_t zeros, left_out;  /* bytes in pages of zeros; mapped, but not in the file */
	uint32_t missing_files;    /* files of the program and libraries that are missing */
};

#define INSPECT_PIN_FRAMES 8u

/* A call path whose blocks pin nearly empty pages. */
struct inspect_pin {
	uint64_t pages;            /* that they pin, perhaps with others */
	char *frame[INSPECT_PIN_FRAMES]; /* innermost first */
	size_t depth;
};

struct inspect_title {
	uint32_t pid;
	const char *command;
	uint64_t rss, swap;        /* VmRSS and VmSwap in /proc/PID/status, bytes */
	unsigned glibc_major, glibc_minor; /* 0 = unknown */
	bool is_newer;             /* than the versions of glibc that are known; it was verified */
	bool has_malloc;           /* its malloc is glibc's, and was used */
	uint32_t inside;           /* threads that stayed in the middle of malloc */
	uint32_t moments;          /* in which those that were in it ran to leave it */
	uint64_t stopped_ns;       /* during that */
	const struct inspect_pin *pin; /* most pages first */
	size_t pin_count;
	const struct inspect_core_title *core; /* NULL = of a process */
};

#endif
