/*
 * The names of the sources, and the frames for memory without code: addresses computed from a
 * hash, with names defined by hand.
 */
#include "session/memory_source.h"

#include "base/frame_key.h"
#include "base/hash.h"

const struct memory_source_info memory_source_info[SOURCE_COUNT] = {
	[SOURCE_HEAP] = {"heap", "Heap", "bytes"},
	[SOURCE_BRK] = {"brk", "Heap growth by brk", "bytes"},
	[SOURCE_MMAP] = {"mmap", "Mapped memory", "bytes"},
	[SOURCE_FAULTS] = {"faults", "Page faults", "pages"},
};

/* A pseudo frame is an address computed from a hash, with a name defined by hand. */

static taddr_t pseudo_address(const char *name)
{
	uint64_t hash = 0;

	for (const char *c = name; *c; c++)
		hash = hash_u64(hash ^ (uint8_t)*c);
	return frame_named_key(hash);
}

uint32_t pseudo_frame_find(const struct calltree *tree, const char *name)
{
	return calltree_find_frame(tree, pseudo_address(name));
}

uint32_t pseudo_frame_get(struct symbols *symbols, struct calltree *tree, const char *name,
			  const char *object)
{
	taddr_t pc = pseudo_address(object ? object : name);
	uint32_t frame = calltree_find_frame(tree, pc);

	if (frame)
		return frame;
	struct symbol_frame sf = {.name = name};
	const struct symbol sym = {.object = object, .frame = &sf, .count = 1};

	symbols_define(symbols, 0, pc, &sym);
	return calltree_get_frame(tree, pc, 0);
}
