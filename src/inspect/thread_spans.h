/* Spans for the memory of threads: stacks and thread variables. */
#ifndef PTMEM_INSPECT_THREAD_SPANS_H
#define PTMEM_INSPECT_THREAD_SPANS_H

#include "inspect/holders.h"
#include "inspect/inspect_input.h"
#include "inspect/spans.h"

/* Adds to @s what no span covers yet; to @holders, if they are wanted, each stack. */
void thread_spans_add(const struct inspect_input *in, struct inspect_memory *m, struct spans *s,
		      struct block_holders *holders);

#endif
