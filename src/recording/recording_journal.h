/*
 * A recording that is written while its program runs: each call appends what has changed since the
 * last one (recording_write.h), and what is in the file can be read at any time.
 */
#ifndef PTMEM_RECORDING_RECORDING_JOURNAL_H
#define PTMEM_RECORDING_RECORDING_JOURNAL_H

#include "recording/recording_build.h"

struct recording_journal;

/* For a new file at @path, of samples if @interval is not 0, that has what is appended first. */
struct recording_journal *recording_journal_new(const char *path, uint64_t interval);
/* The same for the empty file @fd, the journal's from now on. */
struct recording_journal *recording_journal_to_fd(int fd, uint64_t interval);
/* -1 = there is no file yet. */
int recording_journal_fd(const struct recording_journal *j);
/* Bytes that the file has. */
uint64_t recording_journal_size(const struct recording_journal *j);
void recording_journal_close(struct recording_journal *j); /* may be NULL */

/* Where META and MARKERS go before recording_journal_append. */
struct recording *recording_journal_meta(struct recording_journal *j);

/*
 * Keeps what has changed for recording_journal_flush, which is to succeed before the next call. The
 * history of @report's profile is synced. @releases: NULL = not known.
 */
void recording_journal_append(struct recording_journal *j, const struct report *report,
			      const struct recording_names *names, const struct releases *releases);
/* 0 or -errno: what is not written then is kept. */
int recording_journal_flush(struct recording_journal *j);

/* Whether the file has no name any more. */
bool recording_journal_is_removed(const struct recording_journal *j);
/* Whether @path names the file. */
bool recording_journal_is_at(const struct recording_journal *j, const char *path);

#endif
