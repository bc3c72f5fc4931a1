/*
 * Several processes as one JSON object, and as one page that embeds it (doc/format.md, "Several
 * processes"). Hides: names that the recordings share, and what is left out so that a page stays
 * small.
 */
#ifndef PTMEM_RECORDING_PROCESSES_PAGE_H
#define PTMEM_RECORDING_PROCESSES_PAGE_H

#include <stdio.h>

#include "recording/processes.h"

/* Writes all of @p. The caller checks the stream for errors. */
void processes_json_write(FILE *out, const struct processes *p);

/*
 * Writes the page, thinned to PROCESSES_PAGE_SIZE if it would be larger: sums and the total over
 * time stay exact. @more: further members of its JSON, ",\"a\":1", or "". The caller checks the
 * stream for errors.
 */
void processes_page_write(FILE *out, const struct processes *p, const char *more);

#define PROCESSES_PAGE_SIZE ((size_t)5 << 20) /* bytes */

#endif
