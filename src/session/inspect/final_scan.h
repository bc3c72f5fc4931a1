/*
 * The final scan (--leak-check): while the threads of a process are stopped, its registers and
 * memory are scanned for pointers to its blocks. Connects tracee, profile and leak.
 */
#ifndef PTMEM_SESSION_INSPECT_FINAL_SCAN_H
#define PTMEM_SESSION_INSPECT_FINAL_SCAN_H

#include "leak/leakcheck.h"
#include "session/inspect/malloc_module.h"

struct roots;
struct session;

/* The results of a scan for the report. */
struct final_scan {
	struct leakcheck check;
	/* when it was; its duration; bytes read */
	uint64_t time_ns, pause_ns, bytes;
	bool is_done, is_prepared, has_blocks;
	/* for naming roots (--leak-holders): threads, memory, data; NULL unless wanted */
	struct roots *roots;
	struct held_modules modules;
};

/* The process of @s will be scanned soon: allocates memory while it is still running. */
void final_scan_prepare(struct session *s);

/*
 * Scans the process of @s, whose threads are stopped. Without final_scan_prepare there must be no
 * event before final_scan_result.
 */
void final_scan_run(struct session *s);

/* The results, ready for leakcheck_run; or NULL. Owned by the session. */
struct final_scan *final_scan_result(struct session *s);

/* Frees everything of a scan or its preparation. */
void final_scan_forget(struct session *s);

#endif
