/*
 * The final scan (--leak-check): while the threads of a process are stopped, its registers and
 * memory are scanned for pointers to its blocks. Joins tracee, profile and leak.
 */
#ifndef PTMEM_FINAL_SCAN_H
#define PTMEM_FINAL_SCAN_H

#include "leak/leakcheck.h"

struct session;

/* What a scan leaves for the report. */
struct final_scan {
	struct leakcheck check;
	/* when it was; how long it took; memory that was read */
	uint64_t time_ns, pause_ns, bytes;
	bool is_done, is_prepared, has_blocks;
};

/* The process of @s will be scanned soon: allocates memory for that while it runs. */
void final_scan_prepare(struct session *s);

/*
 * Scans the process of @s, whose threads are stopped. Without final_scan_prepare no event may come
 * before final_scan_result.
 */
void final_scan_run(struct session *s);

/* What was found, ready for leakcheck_run; or NULL. The session's. */
struct final_scan *final_scan_result(struct session *s);

/* Releases what a scan, or its preparation, left behind. */
void final_scan_forget(struct session *s);

#endif
