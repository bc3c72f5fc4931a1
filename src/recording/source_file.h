/*
 * Source files of a recording, found where the compiler saw them, or below directories of the
 * user's. Names come from the recording, so only regular files are read.
 */
#ifndef PTMEM_RECORDING_SOURCE_FILE_H
#define PTMEM_RECORDING_SOURCE_FILE_H

#include <time.h>

#include "base/alloc.h"
#include "base/option_row.h"

/* Zero, or as source_file_find makes it; private but for reading. */
struct source_text {
	char *path;         /* where it was found; NULL = nowhere */
	char *data;
	size_t size;        /* of data, bytes */
	VEC(char *) line;   /* of data, without their ends */
	time_t changed;
	int error;          /* why it was not read, errno; EINVAL: no regular file */
};

/*
 * The file as the compiler named it, or below one of @dirs: the longest end of the path that is
 * there. Of more than @most bytes it is not read (EFBIG).
 */
void source_file_find(struct source_text *s, const char *path, const struct option_strings *dirs,
		      size_t most);
/* Why it was not read. */
const char *source_file_problem(const struct source_text *s);
void source_file_deinit(struct source_text *s);

#endif
