/*
 * The file of a recording while its program runs. What cannot be written is kept and tried again; a
 * file that was removed is begun again, but what others have put in its place is not touched.
 */
#ifndef PTMEM_RECORDING_FILE_H
#define PTMEM_RECORDING_FILE_H

#include "recording/recording_journal.h"

/* All zero at first. The owner closes the journal. */
struct recording_file {
	struct recording_journal *journal; /* NULL = nothing is known yet */
	size_t values;             /* of the session, that the journal has */
	/* time of the program that the journal has, and that is in the file; 0 = none */
	uint64_t appended_ms, covered_ms;
	bool was_removed;
};

/* The journal is there, all that it was given is in the file at @path: 0 or -errno. */
int recording_file_open(struct recording_file *f, const char *path, uint64_t interval);
int recording_file_flush(struct recording_file *f);

/* The complete recording did not replace it: says what can be read. */
void recording_file_leave(const struct recording_file *f, const char *path);

#endif
