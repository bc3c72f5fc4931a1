/*
 * The files of --what-if: the one with events, which may come from a pipe, and temporary ones
 * without a name. Hides: where these are.
 */
#ifndef PTMEM_REPORT_WHATIF_WHAT_IF_FILES_H
#define PTMEM_REPORT_WHATIF_WHAT_IF_FILES_H

#include <stdio.h>

/*
 * Opens the file of events at @path; "-" is standard input. What cannot be read twice is copied.
 * The caller closes *@out. -errno: -EINVAL with *@why_out, which the caller frees.
 */
int events_file_open(const char *path, FILE **out, char **why_out);

/* A file in TMPDIR, to be written and read. NULL with errno on failure. */
FILE *temporary_open(void);
/* Explains why such a file could not be written. Returns -EINVAL. */
int temporary_describe(int err, char **why_out);

#endif
