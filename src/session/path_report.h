/* Folded stacks and flame graphs of a session. */
#ifndef PTMEM_PATH_REPORT_H
#define PTMEM_PATH_REPORT_H

struct source;

/* Writes the files requested by the options for @src: one for each source. */
void path_report_write(struct source *src);

#endif
