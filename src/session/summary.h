/* The summary on standard error at the end of a session. */
#ifndef PTMEM_SUMMARY_H
#define PTMEM_SUMMARY_H

struct session;

/*
 * Prints the lines for the process, and the statistics with --stats. @path: of its massif file, or
 * NULL.
 */
void summary_print(struct session *s, const char *path);

/*
 * Says where the massif file @path is, and how to read it. Nothing, if it is NULL, or not a regular
 * file: "-", /dev/null.
 */
void summary_print_file(const char *path);

#endif
