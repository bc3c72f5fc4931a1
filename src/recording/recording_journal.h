/*
 * A recording that is written while its program runs: each call appends the changes since the last
 * one (recording_write.h), and the file can be read at any time.
 */
#ifndef PTMEM_RECORDING_RECORDING_JOURNAL_H
#define PTMEM_RECORDING_RECORDING_JOURNAL_H

#include "recording/recording_build.h"

struct recording_journal;

/* For a new file at @path, created with the first contents; of samples if @interval is not 0. */
struct recording_journal *recording_journal_new(const char *path, uint64_t interval);
/* The same for the empty file @fd, which the journal then owns. */
struct recording_journal *recording_journal_to_fd(int fd, uint64_t interval);
/* -1 = there is no file yet. */
int recording_journal_fd(const struct recording_journal *j);
/* The size of the file, bytes. */
uint64_t recording_journal_size(const struct recording_journal *j);
/* The same once all that was collected is in it. */
uint64_t recording_journal_next_size(const struct recording_journal *j);
/* Whether all that was collected is in the file. */
bool recording_journal_is_written(const struct recording_journal *j);
void recording_journal_close(struct recording_journal *j); /* may be NULL */

/* META and MARKERS are added here before recording_journal_append. */
struct recording *recording_journal_meta(struct recording_journal *j);

/*
 * Collects the changes for recording_journal_flush, which must succeed before the next call. The
 * history, which must be synced, is always the same one.
 */
void recording_journal_append(struct recording_journal *j, const struct recording_input *in);
/* 0 or -errno; what is not written is kept. */
int recording_journal_flush(struct recording_journal *j);

/* Whether the file was unlinked. */
bool recording_journal_is_removed(const struct recording_journal *j);
/* Whether @path is this file. */
bool recording_journal_is_at(const struct recording_journal *j, const char *path);

#endif
