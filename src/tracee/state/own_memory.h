/*
 * ptmem's own memory in an address space: areas for stubs and pads, and the memory that pads share
 * with ptmem.
 */
#ifndef PTMEM_TRACEE_STATE_OWN_MEMORY_H
#define PTMEM_TRACEE_STATE_OWN_MEMORY_H

#include "base/types.h"
#include "base/vec.h"

struct address_space;

/* Memory for stubs: inject/stub_area.h. */
struct stub_area {
	taddr_t start;
	uint32_t size, used;  /* size 0: the program has mapped its own memory there */
	bool is_slack;
	bool is_pads;         /* for pads, not for stubs */
	bool is_memory;       /* is_pads: their shared memory, without code; has no header */
	bool is_trap_handler; /* holds the handler of SIGTRAP; has no header */
	uint8_t *saved;       /* is_slack: the original contents; owned by the list */
	/*
	 * What ptmem has written into it, and zeros behind: the program may unmap it. NULL: not
	 * known. Owned by the list.
	 */
	uint8_t *contents;
	uint32_t written;     /* bytes of it */
};

struct own_memory {
	VEC(struct stub_area) areas;
	/* shared memory of its own pads; 0 = none. What a fork inherits is in the areas. */
	taddr_t shared;
	uint64_t shared_size;
	uint64_t mapped;      /* bytes of address space that ptmem uses in it */
};

/* An area of code of @size bytes, which was just mapped at @start and is empty. */
struct stub_area *own_memory_add_code(struct own_memory *own, taddr_t start, uint32_t size);
/* Notes that @size bytes are written to @addr, in @a; not beyond its end. */
void own_memory_note(struct stub_area *a, taddr_t addr, const void *bytes, size_t size);
/* @a is the program's now: it keeps its place in the list, with the size 0. */
void own_memory_give_up(struct stub_area *a);
/* For a fork, which has its parent's shared memory mapped, too. */
struct own_memory own_memory_clone(const struct own_memory *from);
/* Drops areas and shared memory; reuses the allocations. */
void own_memory_clear(struct own_memory *own);
void own_memory_deinit(struct own_memory *own);

/* The area that contains @addr, or NULL. */
struct stub_area *own_memory_find(const struct own_memory *own, taddr_t addr);
const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr);
/* Whether ptmem mapped the memory at @addr; false for stubs at the end of a text. */
bool space_is_own(const struct address_space *s, taddr_t addr);

#endif
