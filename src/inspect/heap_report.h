/*
 * The contents of glibc's heaps: sums by row and by arena, what malloc_trim would return, and the
 * sizes of blocks.
 */
#ifndef PTMEM_INSPECT_HEAP_REPORT_H
#define PTMEM_INSPECT_HEAP_REPORT_H

#include <pthread.h>

#include "base/alloc.h"
#include "base/types.h"
#include "malloc/account.h"
#include "inspect/block_types.h"
#include "inspect/heap_map.h"
#include "inspect/holders.h"
#include "malloc/glibc.h"
#include "malloc/pymalloc.h"

/* Bytes of chunks, whether resident or not. */
struct heap_arena {
	taddr_t addr;
	bool is_main;
	uint32_t heaps;
	uint64_t threads;              /* threads that allocate from it */
	uint64_t system_bytes;
	uint64_t missing_bytes;        /* of those, bytes in heaps that were not found */
	uint64_t live_blocks, live_bytes;
	uint64_t free_bytes[ROW_TOP + 1]; /* by row: ROW_TCACHE to ROW_TOP */
	struct inspect_bytes counted;  /* resident or swapped bytes in its heaps */
	struct inspect_bytes free;     /* of these, bytes in free chunks */
	/* bytes that malloc_trim(0) would return; 0 in a corrupt heap, in which it might abort */
	struct inspect_bytes trim;
	/* parts of free: in chunks of at least HEAP_LARGE bytes; in the top chunk */
	struct inspect_bytes large_free, top;
	struct pinned_pages pages;
};
/* glibc's initial mmap_threshold. */
#define HEAP_LARGE (UINT64_C(128) << 10)

struct heap_report {
	VEC(struct heap_arena) arenas; /* as in struct glibc */
	struct pinned_class classes[SIZE_CLASSES];
	struct heap_map map;
	struct type_pages type_pages;  /* until heap_report_finish */
	uint64_t unlisted;             /* elements of lists that are not chunks */
	uint32_t broken_heaps;         /* heaps that could not be walked completely */
};

/*
 * Receives a block in use: fn(ctx, block, usable size, type). @type: an index in struct
 * block_types; 0 if types are not wanted.
 */
typedef void heap_block_fn(void *ctx, taddr_t addr, uint64_t usable, uint32_t type);

struct heap_input {
	struct inspect_memory *memory;
	const struct glibc *glibc;
	const struct glibc_lists *lists;
	struct block_types *types;     /* NULL = not wanted */
	struct block_holders *holders; /* NULL = not wanted */
	const struct pinned_paths *paths; /* NULL = they are not known */
	taddr_t program_break;         /* 0 = unknown */
	heap_block_fn *block, *python_block; /* NULL = not wanted */
	void *block_ctx;
	const struct touched_pages *touched; /* NULL = not known; with types */
	bool only_blocks;              /* only blocks are wanted, no sums */
};

/* The map is given the arenas of @python, too. */
void heap_report_init(struct heap_report *r, const struct glibc *g, const struct pymalloc *python,
		      struct inspect_memory *memory);
void heap_report_deinit(struct heap_report *r);

/* Reports a block in use; returns its type. */
uint32_t heap_report_block(const struct heap_input *in, taddr_t addr, uint64_t usable);

/* Adds heap number @heap, and its bytes to @account. Call it for heaps in ascending order. */
void heap_report_add(struct heap_report *r, struct heap_input *in, size_t heap,
		     struct account *account);

/* When all were added: counts in @types the pages that their blocks pin. */
void heap_report_finish(struct heap_report *r, struct block_types *types);

/*
 * The blocks of Python's allocator, which are objects and memory of objects, by arena: an arena is
 * returned when none of its blocks is in use, so few of them may keep it.
 */

/* Upper bounds of the live part of an arena, percent. */
#define PYTHON_STEPS 6u
extern const uint32_t python_step[PYTHON_STEPS];
#define PYTHON_FEW 10u /* an arena with at most that much live is nearly empty */

/* Arenas that are alike. */
struct python_arenas {
	uint64_t count, blocks;
	uint64_t counted, free; /* bytes that are resident or swapped; of these, not live */
};

struct python_pin {
	uint32_t type;          /* of blocks, an index in struct block_types */
	uint64_t arenas;        /* nearly empty ones that these pin, perhaps with others */
	uint64_t blocks;        /* in these arenas */
};

struct python_report {
	enum pymalloc_found found;
	struct pymalloc_layout layout;
	struct python_arenas all, step[PYTHON_STEPS]; /* all: their sum */
	uint64_t live_bytes, free_pools;
	struct pymalloc_class classes[PYMALLOC_CLASSES];
	VEC(struct python_pin) pins;    /* most arenas first; if types are wanted */
	uint32_t broken;
	uint32_t interpreters;          /* with allocators of their own; these are sums */
	bool has_lost;                  /* there are more, whose arenas could not be read */
	bool has_hooks;                 /* for debugging: each place holds more than its block */
};

/* @heap has what else is done with each block; python_report_deinit frees @out. */
void python_report_make(struct pymalloc *p, const struct heap_input *heap,
			struct python_report *out);
void python_report_deinit(struct python_report *r);

#define PYTHON_LOOKS 5u /* as many as are made until none is torn: each seldom is */
/* Whether a thread may have been in the middle of an allocation, so that another look helps. */
bool python_report_is_torn(const struct python_report *r);

/*
 * Passes the chunks of a heap from the thread that finds them to one that adds them up, in order
 * and in batches: where blocks are small, adding up takes half of the time.
 */

#define CHUNK_BATCH 1024u
#define CHUNK_BATCHES 8u

typedef void chunk_fn(void *ctx, const struct glibc_chunk *chunk);

struct chunk_batch {
	size_t count;
	struct glibc_chunk chunk[CHUNK_BATCH];
};

struct chunk_queue {
	chunk_fn *fn;
	void *ctx;
	struct chunk_batch *batch; /* a ring of CHUNK_BATCHES */
	struct chunk_batch *current; /* being filled */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock;   /* of what follows */
	pthread_cond_t given, returned;
	uint64_t filled, emptied; /* batches, in all */
	bool is_ended;
};

/*
 * @fn is called for each chunk, by another thread if @wants_thread and there is a CPU for it, until
 * chunk_queue_finish has returned.
 */
void chunk_queue_start(struct chunk_queue *q, chunk_fn *fn, void *ctx, bool wants_thread);
/* Waits until @fn was called for all chunks. */
void chunk_queue_finish(struct chunk_queue *q);

/* Adds @chunk, and gives the batch to @fn if it is full. */
void chunk_queue_add(struct chunk_queue *q, const struct glibc_chunk *chunk);

#endif
