/* The output of --inspect without a profile: --inspect-out, or standard output. */
#ifndef PTMEM_INSPECT_OUTPUT_H
#define PTMEM_INSPECT_OUTPUT_H

#include <stdbool.h>

struct inspect_blocks;
struct inspect_look;
struct inspect_title;
struct run;

/* Whether the output is a list of blocks, which must be collected. */
bool inspect_output_wants_blocks(const struct run *run);

/* Writes the report for @t's process. 0, or -errno after a message. */
int inspect_output_write(struct run *run, const struct inspect_title *t,
			 const struct inspect_look *look, struct inspect_blocks *blocks);

#endif
