/* The massif.out format: the grammar is in massif.c. */
#ifndef PTMEM_OUTPUT_MASSIF_H
#define PTMEM_OUTPUT_MASSIF_H

#include <stdio.h>

struct report;
struct snapshot;

/* The massif.out format, doc/massif.md section 1. 0 or -errno. */
int massif_write(FILE *file, const struct report *r);
/* The same with one snapshot, @now: the current state of the profile. */
int massif_write_now(FILE *file, const struct report *r, const struct snapshot *now);

#endif
