/*
 * What a step needs is known long before its turn, one thing after the other:
 *
 *	the block's extent and type -> its bytes -> where its pointers lead -> what is known there
 */
#include "graph/typed_ahead.h"

#define EXTENT_AHEAD 24u /* steps */
#define BYTES_AHEAD 16u
#define POINTERS_AHEAD 10u
#define BLOCKS_AHEAD 5u
#define WORDS_AHEAD 3u   /* of a block: most blocks have no more pointers */
#define ELEMENT_AHEAD 32u /* of an array of pointers */
#define ELEMENT_BLOCK_AHEAD 16u
#define WORD 8u

/* The first @bytes of the block of step @i; NULL = they are not at hand. */
static const uint8_t *peek(const struct typed_walk *w, size_t i, size_t bytes)
{
	struct typed_extent e;

	w->heap->extent(w->heap->ctx, w->queue.data[i].block, &e);
	return e.size < bytes ? NULL : memory_at(w->heap->memory, e.start, bytes);
}

static void fetch_extent(const struct typed_walk *w, size_t i)
{
	uint32_t block = w->queue.data[i].block;

	w->heap->extent_soon(w->heap->ctx, block);
	__builtin_prefetch(&w->type[block]);
}

static void fetch_pointers(const struct typed_walk *w, size_t i)
{
	const uint8_t *data = peek(w, i, WORDS_AHEAD * WORD);

	for (size_t k = 0; data && k < WORDS_AHEAD; k++)
		w->heap->find_soon(w->heap->ctx, load_u64(data + k * WORD));
}

/* What is known of the block that @addr leads to, if one is there. */
static void fetch_block(const struct typed_walk *w, taddr_t addr)
{
	uint32_t block = w->heap->find(w->heap->ctx, addr);

	if (block == TYPED_NO_BLOCK)
		return;
	w->heap->extent_soon(w->heap->ctx, block);
	__builtin_prefetch(&w->fit[block], 1);
}

static void fetch_blocks(const struct typed_walk *w, size_t i)
{
	const uint8_t *data = peek(w, i, WORDS_AHEAD * WORD);

	for (size_t k = 0; data && k < WORDS_AHEAD; k++)
		fetch_block(w, load_u64(data + k * WORD));
}

void typed_ahead(const struct typed_walk *w)
{
	size_t i = w->next, count = w->queue.count;

	if (i + EXTENT_AHEAD < count)
		fetch_extent(w, i + EXTENT_AHEAD);
	if (i + BYTES_AHEAD < count)
		__builtin_prefetch(peek(w, i + BYTES_AHEAD, WORD));
	if (i + POINTERS_AHEAD < count)
		fetch_pointers(w, i + POINTERS_AHEAD);
	if (i + BLOCKS_AHEAD < count)
		fetch_blocks(w, i + BLOCKS_AHEAD);
}

void typed_ahead_element(const struct typed_walk *w, const uint8_t *data, uint64_t bytes)
{
	if (bytes >= (ELEMENT_AHEAD + 1) * WORD)
		w->heap->find_soon(w->heap->ctx, load_u64(data + ELEMENT_AHEAD * WORD));
	if (bytes >= (ELEMENT_BLOCK_AHEAD + 1) * WORD)
		fetch_block(w, load_u64(data + ELEMENT_BLOCK_AHEAD * WORD));
}
