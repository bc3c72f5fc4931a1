/*
 * What points to the blocks in use. Each block has one holder, so that the numbers add up: the best
 * that was found, in this order
 *
 *	variable   of the program or a library
 *	tls        a variable of a thread
 *	stack      of a thread, in use
 *	register
 *	block      another block in use, of a type
 *	mapping    other memory
 *	nothing
 *
 * A pointer to the inside of a block counts. One to what Python has before an object does not: by
 * these its collector chains all objects, whoever refers to them. Words are kept while the process
 * is stopped (leak/pointer_scan.h), and looked up afterwards.
 */
#ifndef PTMEM_INSPECT_HOLDERS_H
#define PTMEM_INSPECT_HOLDERS_H

#include <sys/types.h>

#include "base/alloc.h"
#include "malloc/account.h"
#include "leak/block_index.h"
#include "leak/pointer_scan.h"

enum holder_kind {
	HOLDER_VARIABLE, HOLDER_TLS, HOLDER_STACK, HOLDER_REGISTER, HOLDER_BLOCK, HOLDER_MAPPING,
	HOLDER_NOTHING, HOLDER_KINDS,
};
extern const char *const holder_kind_name[HOLDER_KINDS];

/* Blocks of a type that one thing holds. */
struct block_holder {
	uint32_t type;          /* of the blocks */
	enum holder_kind kind;
	uint64_t key;           /* address of a variable, id of a thread, type of a block */
	char *name, *object;    /* of a variable, owned; NULL = unknown */
	uint64_t blocks, bytes;
};

/* Memory of a thread; empty ranges are unknown. */
struct holder_thread {
	pid_t tid;
	taddr_t stack, stack_end, tls, tls_end;
};

/* A frame of a thread's stack: from its stack pointer to that of the next one. */
struct holder_frame {
	pid_t tid;
	taddr_t start, pc;
};

/* Memory that can be written to, as it is mapped. */
struct holder_map {
	taddr_t start, end;
	char *path;             /* of a file, or what the kernel calls it; "" = none; owned */
};

/* Where memory outside of blocks belongs to. */
struct holder_place {
	enum holder_kind kind;  /* VARIABLE, of the program or a library; TLS, STACK, MAPPING */
	pid_t tid;              /* of a thread's */
};

/* Callback of block_holders_find: the start of the variable at @addr; 0 = none is known. */
typedef taddr_t holder_variable_fn(void *ctx, taddr_t addr);

/* Words of blocks of a type that keep nothing alive. */
struct holder_weak {
	uint32_t word;          /* this one; 0 = none */
	uint32_t before;        /* all before this one */
};

/* A word in a block that is a variable of its own. */
struct holder_global {
	taddr_t word;
	char *name;             /* "app: cache"; owned */
};

struct block_holders {
	VEC(struct block_holder) list;         /* by type, most blocks first */
	VEC(uint64_t) registers;
	/* only up to block_holders_find */
	VEC(uint32_t) headers;                 /* by type: bytes that nothing refers to */
	VEC(struct holder_weak) weak;          /* by type */
	VEC(struct holder_global) globals;     /* ascending; those of Python's modules */
	/* leaf: type; time: number of the holder + 1, and first as block_holders_add has it */
	VEC(struct leakcheck_block) blocks;
	VEC(struct holder_thread) threads;
	VEC(struct holder_frame) frames;        /* ascending, if they are wanted */
	VEC(struct holder_map) maps;            /* ascending */
	VEC(struct addr_range) objects;         /* data of the program and libraries, ascending */
	VEC(struct addr_range) own;             /* malloc's own, outside of heaps: does not count */
	struct spans spans;
	struct pointer_scan scan;
};

void block_holders_init(struct block_holders *h);
void block_holders_deinit(struct block_holders *h);
/* Frees what is only needed up to block_holders_find. */
void block_holders_forget(struct block_holders *h);

/* Pointers to the first @header bytes of a block of @type do not count. */
void block_holders_set_header(struct block_holders *h, uint32_t type, uint32_t header);
void block_holders_set_weak(struct block_holders *h, uint32_t type, struct holder_weak weak);
/* @words: how many words of it count, + 1; 0: all do. */
void block_holders_add(struct block_holders *h, taddr_t addr, uint64_t usable, uint32_t type,
		       uint32_t words);

/* Keeps the words of all memory that can be written to and counts, after all blocks were added. */
void block_holders_scan(struct block_holders *h, const struct resident *pages,
			memory_read_fn *read, void *ctx);

/* Where the memory at @addr, which is in no block, belongs to. False: nothing in it counts. */
bool block_holders_place(const struct block_holders *h, taddr_t addr, struct holder_place *out);

/* Whether a pointer to @addr, which is in block number @block, refers to the block. */
static inline bool block_holders_refers(const struct block_holders *h, uint32_t block, taddr_t addr)
{
	const struct leakcheck_block *b = &h->blocks.data[block];

	/* most often the block itself need not be read, which takes longer than all else here */
	return h->headers.count == 0 || b->leaf >= h->headers.count ||
	       addr - b->addr >= h->headers.data[b->leaf];
}

/* Fills the list; the process may have been resumed. */
void block_holders_find(struct block_holders *h, holder_variable_fn *variable, void *ctx);

#endif
