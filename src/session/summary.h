/* The summary on standard error at the end of a session. */
#ifndef PTMEM_SUMMARY_H
#define PTMEM_SUMMARY_H

struct session;

/* The lines of the process, and the statistics with --stats. @path: of its massif file, or NULL. */
void summary_print(struct session *s, const char *path);

#endif
