/*
 * An inspection: what is wanted, what was read, whether it can be reported, and its report. The
 * memory may be that of a process that is stopped for it (inspect_command.h), of a core file, or of
 * a program that is being profiled (inspect_session.h).
 */
#ifndef PTMEM_SESSION_INSPECT_INSPECTION_H
#define PTMEM_SESSION_INSPECT_INSPECTION_H

#include "output/brief.h"
#include "output/graph/graph_report.h"
#include "output/inspect_report.h"
#include "session/inspect/inspect_stopped.h"
#include "session/options.h"
#include "session/out.h"
#include "tracee/os/accessed.h"
#include "tracee/os/huge_pages.h"

struct profile;

/*
 * Which call paths' blocks pin nearly empty pages of the heap, while a process is profiled: counted
 * as its heaps are walked.
 */
struct path_pins {
	struct pinned_paths paths;    /* has a pointer to this */
	const struct profile *profile;
	VEC(struct inspect_pin) list; /* most pages first; names are owned */
	VEC(struct inspect_pin) cold; /* those with most untouched bytes first; likewise */
};

/* May not move. */
struct inspection {
	bool wants_blocks;       /* one by one */
	bool wants_types, wants_holders;
	bool wants_graph;        /* and no report of --inspect */
	bool is_brief;
	struct brief brief;      /* its command, and what precedes its lines */
	bool wants_graph_file;   /* as a file for ptmem-report, not as text or JSON */
	bool keeps_graph;        /* too: for a page or a recording */
	struct graph_wish graph_wish;
	const char *containers;  /* for the graph: a file of descriptions; NULL = none */
	bool wants_pprof;        /* the profile that a Go program keeps, and nothing else */
	double cold;             /* seconds for which it is watched what is touched; 0 = not */
	struct touched_pages touched;
	struct memory_copy copy; /* until it is classified */
	int rc;                  /* of what read it */
	struct inspect_stopped look;
	struct inspect_blocks blocks;
	struct inspect_go go;    /* by inspection_judge */
	struct path_pins pins;   /* of a profiled program */
	struct huge_page_sums huge; /* by inspection_read_huge */
	uint64_t stopped_ns;     /* in all looks */
	uint64_t time_ms;        /* when it was read, since a profile began */
	/* by inspection_judge */
	char *why;               /* it cannot be reported; NULL = it can; owned */
	struct inspect_title title;
};

/* Where the options want it: the file that it is, and its name; NULL = none. */
enum output inspection_output(const struct options *o);
const char *inspection_path(const struct options *o);

/* @path: where it will be written, which says in what form; NULL: as text. */
void inspection_init(struct inspection *i, const struct options *o, const char *path);
struct inspect_wish inspection_wish(struct inspection *i);

/*
 * Reads and classifies, again if Python's allocator was being changed. @read calls inspect_stopped
 * and stores its result. 0 or -errno.
 */
typedef int inspection_read_fn(struct inspection *i, void *ctx);
int inspection_read(struct inspection *i, inspection_read_fn *read, void *ctx);

/* Reads @most bytes of transparent huge pages of @pid, which runs again if it is to. */
void inspection_read_huge(struct inspection *i, pid_t pid, uint64_t most);

/* Makes the title of what was classified; @command must outlive it. False: it is refused. */
bool inspection_judge(struct inspection *i, uint32_t pid, const char *command);

/*
 * Writes it: as JSON if @path ends in .json, the blocks if in .csv, else as text; "-" is standard
 * output. Warns if blocks may not be all, or not only those in use. 0 or -errno.
 */
int inspection_write(struct inspection *i, const char *path);
/* The same with a message, elsewhere if it cannot be written there (out.h). */
int inspection_save(struct inspection *i, const char *path);

/* Writes the page of its graph: 0, or -errno after a message. */
int inspection_save_page(const struct inspection *i, const char *path);

/* Prints it as text. */
void inspection_print(struct inspection *i, FILE *file);

void inspection_deinit(struct inspection *i);

#endif
