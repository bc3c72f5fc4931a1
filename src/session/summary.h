/* The summary on standard error at the end of a session. */
#ifndef PTMEM_SUMMARY_H
#define PTMEM_SUMMARY_H

struct session;

/*
 * Prints the lines for the process, and the statistics with --stats. @path: of its massif file, or
 * NULL.
 */
void summary_print(struct session *s, const char *path);

#endif
