/* The title of a report of --inspect, and the choice of its format. */
#ifndef PTMEM_SESSION_INSPECT_INSPECT_TITLE_H
#define PTMEM_SESSION_INSPECT_INSPECT_TITLE_H

#include "output/inspect_report.h"

struct inspect_stopped;

/* Everything except stopped_ns; @command must outlive @out. */
void inspect_title_init(struct inspect_title *out, uint32_t pid, const char *command,
			const struct inspect_stopped *look);

/*
 * Whether the structures of this version of glibc may be known: 0 = unknown version. A newer one
 * than the newest known is tried: its structures must be verified.
 */
bool inspect_title_knows(unsigned major, unsigned minor);

/*
 * Why the malloc of process @pid cannot be read, by inspect_look_classify; NULL if it can.
 * The caller frees it.
 */
char *inspect_title_refusal(uint32_t pid, const struct inspect_stopped *look);

/* Whether inspect_title_write writes the blocks in use to a file of that name. */
bool inspect_title_wants_blocks(const char *path);

/* What was found, as a file: JSON if its path ends in .json, the blocks if in .csv, else text. */
struct inspect_found {
	const char *path;          /* "-" is standard output */
	const struct inspect_title *title;
	const struct inspect_report *report;
	struct inspect_blocks *blocks;
};

/* Writes it. Warns if blocks may not be all, or not only those in use. 0 or -errno. */
int inspect_title_write(const struct inspect_found *f);
/* The same with a message, elsewhere if it cannot be written there (out.h). */
int inspect_title_save(const struct inspect_found *f);

#endif
