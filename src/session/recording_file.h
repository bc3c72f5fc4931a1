/*
 * The file of a recording while its program runs. Failed writes are kept and retried. A file that
 * was removed is written anew, but a file that others put in its place is not touched.
 */
#ifndef PTMEM_RECORDING_FILE_H
#define PTMEM_RECORDING_FILE_H

#include "recording/recording_journal.h"

/* All zero at first. The owner closes the journal. */
struct recording_file {
	struct recording_journal *journal; /* NULL = nothing written yet */
	size_t values;             /* data of the session that the journal has */
	/* program time up to which the journal, and the file, are complete; 0 = none */
	uint64_t appended_ms, covered_ms;
	bool was_removed;
};

/* Opens the journal if necessary, and writes everything in it to the file at @path: 0 or -errno. */
int recording_file_open(struct recording_file *f, const char *path, uint64_t interval);
int recording_file_flush(struct recording_file *f);

/* The complete recording could not replace it: reports which part can be read. */
void recording_file_leave(const struct recording_file *f, const char *path);

#endif
