/*
 * The final scan (--leak-check): while the threads of a process are stopped, its registers and
 * memory are scanned for pointers to its blocks. Connects tracee, profile and leak.
 */
#ifndef PTMEM_SESSION_INSPECT_FINAL_SCAN_H
#define PTMEM_SESSION_INSPECT_FINAL_SCAN_H

#include "leak/leakcheck.h"
#include "session/inspect/malloc_module.h"

struct copied_scan;
struct roots;
struct run;
struct session;

/* The results of a scan for the report. */
struct final_scan {
	struct leakcheck check;
	/* when it was; its duration; bytes read */
	uint64_t time_ns, pause_ns, bytes;
	bool is_done, is_prepared, has_blocks;
	bool has_earlier;           /* there are blocks that are not known */
	struct copied_scan *copied; /* of memory that was copied, and is not scanned yet; or NULL */
	/* for naming roots (--leak-holders): threads, memory, data; NULL unless wanted */
	struct roots *roots;
	struct held_modules modules;
};

/*
 * All processes, or that of address space @only if it is not 0, will be scanned soon: copies their
 * memory (copy_ahead_sessions), also where only an inspection follows, or allocates memory.
 */
void final_scan_prepare(struct run *run, uint32_t only);

/*
 * Scans the process of @s, whose threads are stopped, or copies what it wrote since that was
 * prepared. There must be no event before final_scan_result.
 */
void final_scan_run(struct session *s);

/* The results, ready for leakcheck_run; or NULL. Owned by the session. */
struct final_scan *final_scan_result(struct session *s);

/* Frees everything of a scan or its preparation. */
void final_scan_forget(struct session *s);

#endif
