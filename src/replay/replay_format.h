/*
 * What ptmem-report passes to ptmem-replay, and gets back: two files, by descriptor. Hides nothing:
 * both are read and written by these two programs alone, which are installed together.
 *
 * The plan, which ptmem-replay reads:
 *	struct replay_head, then from REPLAY_OPS_AT on its operations, then its turns
 * The result, which both map:
 *	struct replay_result, then a struct replay_sample for each sample, then a struct
 *	replay_block for each block
 *
 * A turn is a thread's next operations: the threads take turns, so that a replay is the same each
 * time, and each block has been allocated before another thread frees it.
 */
#ifndef PTMEM_REPLAY_REPLAY_FORMAT_H
#define PTMEM_REPLAY_REPLAY_FORMAT_H

#include "base/types.h"

enum replay_descriptor { REPLAY_PLAN = 3, REPLAY_RESULT = 4 };

#define REPLAY_OPS_AT 4096

struct replay_head {
	uint64_t ops, turns, blocks, samples, threads;
};

#define REPLAY_PROBE "probe" /* first argument: only the library is named, there is no plan */

#define REPLAY_CLOCK 1024 /* the clock of the recording */

enum replay_exit { REPLAY_DONE, REPLAY_FAILED = 2, REPLAY_TOO_LARGE };

enum replay_kind {
	REPLAY_MALLOC,
	REPLAY_CALLOC,
	REPLAY_ALIGNED,
	REPLAY_REALLOC,
	REPLAY_FREE,
	REPLAY_EXIT,   /* the thread ends: last of its operations */
	REPLAY_SAMPLE, /* resident memory is measured */
	REPLAY_TOUCH,  /* the block is touched up to the size */
};

struct replay_op {
	uint64_t time_ns; /* since the start */
	uint64_t size;    /* bytes; the last one of all samples: none */
	uint64_t touched; /* of an allocation: so many bytes at most are touched at once */
	uint32_t block;   /* index of the block, or of the sample */
	uint8_t kind;     /* enum replay_kind */
	uint8_t shift;    /* of an alignment: its logarithm to the base 2 */
};

struct replay_turn {
	uint32_t thread;  /* 0: the program's first thread */
	uint32_t ops;
};

struct replay_sample {
	uint64_t resident; /* bytes of the heap */
};

struct replay_block {
	uint64_t address;  /* 0: there is none now */
	uint64_t size;     /* as requested */
	uint64_t touched;  /* bytes, from its start on */
};

struct replay_result {
	uint64_t limit;       /* of the reader: bytes of resident memory, then REPLAY_TOO_LARGE */
	uint64_t clock;       /* of the reader: by how many REPLAY_CLOCK-ths it is fast */
	uint64_t is_done;
	uint64_t failed;      /* calls that got no memory */
	uint64_t cpu_ns;      /* of the calls, and of touching what they returned */
	uint64_t high_water;  /* the highest resident memory of the heap that the kernel saw */
	uint64_t other_bytes; /* anonymous memory besides the heap, at the start */
	char library[512];    /* whose malloc it is: a path */
};

static inline struct replay_sample *replay_samples(struct replay_result *r)
{
	return (struct replay_sample *)(r + 1);
}

static inline struct replay_block *replay_blocks(struct replay_result *r, uint64_t samples)
{
	return (struct replay_block *)(replay_samples(r) + samples);
}

static inline size_t replay_result_size(uint64_t samples, uint64_t blocks)
{
	return sizeof(struct replay_result) + samples * sizeof(struct replay_sample) +
	       blocks * sizeof(struct replay_block);
}

#endif
