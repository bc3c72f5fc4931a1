/*
 * The contents of glibc's heaps: sums by row and by arena, what malloc_trim would return, and the
 * sizes of blocks.
 */
#ifndef PTMEM_INSPECT_HEAP_REPORT_H
#define PTMEM_INSPECT_HEAP_REPORT_H

#include "base/vec.h"
#include "inspect/account.h"
#include "inspect/block_types.h"
#include "inspect/glibc_walk.h"
#include "inspect/heap_map.h"
#include "inspect/holders.h"
#include "inspect/pinned.h"

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

#endif
