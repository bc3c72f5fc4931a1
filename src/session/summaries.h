/*
 * The summary of a run: that of its process, or, if there were several, which of them was the
 * largest, and ten lines at most about all others.
 *
 *	ptmem: largest peak of 37 processes: process 4713, cc1 -quiet b.c
 *	                       or "of 40 programs in 37 processes", some of which executed others
 *	ptmem:   peak         48.2 MiB (50,542,080 bytes) in 1,234 blocks after 1.20 s
 *	ptmem:   largest      ...                                      its call sites
 *	ptmem:   db            40.3 MiB  83.6 %  orders; ...               of --label
 *	ptmem:   next          41.0 MiB  process 4715, cc1 -quiet c.c
 *	ptmem:                 40.1 MiB  process 4711, cc1 -quiet a.c
 *	ptmem:   others       34 processes, of 12.1 MiB at most (-v prints all)
 *	ptmem:   all          1,234 allocations of 5,678 bytes; 91,011 bytes in use at their ends
 *	ptmem:   all by db     20.3 MiB  81.0 %  orders; ...           of --label, at their ends
 *	ptmem:   killed       2 processes by a signal, the first one 4714 by SIGSEGV
 *	ptmem:   written to   37 files, massif.out.4711 the first; all.html
 *	ptmem: hint: ... (process 4713, cc1)   of processes that matter, the largest first, if
 *	                                       there is room
 *	ptmem: 12 calls of load in 3 processes, at most: ...           of --within, each function
 *
 * Each process has its own summary as well with -v and --stats, and if the processes are followed
 * (--follow) without one page for all.
 */
#ifndef PTMEM_SESSION_SUMMARIES_H
#define PTMEM_SESSION_SUMMARIES_H

#include "base/types.h"
#include "session/labels.h"
#include "session/out.h"
#include "session/within.h"

struct run;
struct session;

#define SUMMARIES_NEXT 2  /* processes that are named besides the largest */
#define SUMMARIES_LINES 10 /* after the first one */
#define SUMMARIES_HINTS 3 /* different ones that are kept */

/* Of one process; all is owned. */
struct summaries_process {
	char *title;           /* "process 12, ./a"; NULL = there is none */
	uint64_t peak;
	char *peak_line, *sites, *labels; /* as they are printed */
};

/* A hint, and the largest peak of the processes that it is about. */
struct summaries_hint {
	char *line;            /* as it is printed for one; owned; NULL = there is none */
	uint64_t peak;
	char *process;         /* with this peak: "12, sort"; owned */
	size_t others;         /* more programs with the same hint */
};

/* All zero at first; owned by the run. */
struct summaries {
	size_t count;          /* of programs that processes ran */
	size_t processes;
	/* the largest one, and the next ones */
	struct summaries_process most[1 + SUMMARIES_NEXT];
	uint64_t allocations, allocated, live;
	bool is_estimate;
	uint64_t killed;
	char *first_killed;    /* "4714 by SIGSEGV" */
	char *only;            /* the whole summary of the first one */
	struct summaries_hint hint[SUMMARIES_HINTS]; /* all different */
	within_totals within;
	struct label_totals labels;
	/* files that were written, and the first one of each kind */
	struct {
		size_t count;
		char *first;
	} file[OUTPUTS];
	/* what is being collected; NULL = messages are printed as they come */
	FILE *collected;
	char *text;
	size_t text_size;
};

/* Messages of level LOG_INFO that follow may be part of a summary of all processes. */
void summaries_begin(struct session *s);
/* The summary of @s, with the name of its massif file, which may be NULL. */
void summaries_print(struct session *s, const char *path);
void summaries_end(struct session *s);

/* Prints what was kept, when the last process has ended. */
void summaries_finish(struct run *run);
void summaries_deinit(struct summaries *s);

#endif
