/*
 * A recording that is written while its program runs: each call appends what has changed since the
 * last one (recording_write.h), and what is in the file can be read at any time.
 */
#ifndef PTMEM_RECORDING_RECORDING_JOURNAL_H
#define PTMEM_RECORDING_RECORDING_JOURNAL_H

#include "recording/recording_build.h"

struct recording_journal;

/* A new file at @path, of samples if @interval is not 0; NULL and errno. */
struct recording_journal *recording_journal_open(const char *path, uint64_t interval);
void recording_journal_close(struct recording_journal *j); /* may be NULL */

/* Where META and MARKERS go before recording_journal_append. */
struct recording *recording_journal_meta(struct recording_journal *j);

/*
 * The history of @report's profile is synced. @releases: NULL = not known. 0 or -errno; after that
 * nothing more is written.
 */
int recording_journal_append(struct recording_journal *j, const struct report *report,
			     const struct recording_names *names, const struct flows *releases);

#endif
