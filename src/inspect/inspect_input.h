/* What inspect_run is given: the memory, threads, objects and registers of a stopped process. */
#ifndef PTMEM_INSPECT_INSPECT_INPUT_H
#define PTMEM_INSPECT_INSPECT_INPUT_H

#include "inspect/glibc_lists.h"
#include "inspect/heap_report.h"

/* A part of the program or a library, a PT_LOAD segment. */
struct inspect_segment {
	taddr_t start, end;
	bool is_write;
};

struct inspect_input {
	struct resident resident;
	struct memory_source source;
	VEC(struct glibc_thread) threads;       /* the main thread is first */
	VEC(struct inspect_segment) segments;   /* ascending */
	VEC(struct glibc_range) profiler;       /* mapped by ptmem */
	heap_block_fn *block;                   /* NULL = not wanted */
	heap_block_fn *python_block;            /* likewise: those of Python's allocator */
	void *block_ctx;
	bool only_blocks;                       /* only blocks are wanted: no rows, no pages */
	const struct pinned_paths *paths;       /* of blocks; NULL = they are not known */
	bool wants_types;
	bool wants_holders;                     /* what points to blocks, by type; needs types */
	VEC(uint64_t) registers;                /* for that: words of all threads */
};

/* Adds the segment [@start, @end). in->resident must be set. */
void inspect_add_segment(struct inspect_input *in, taddr_t start, taddr_t end);

/* Whether @m has a part of the program or a library. */
bool inspect_is_object(const struct inspect_input *in, const struct map *m);

void inspect_input_deinit(struct inspect_input *in);

#endif
