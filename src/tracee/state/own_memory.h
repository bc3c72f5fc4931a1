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
	uint32_t size, used;
	bool is_slack;
	bool is_pads;         /* for pads, not for stubs */
	bool is_memory;       /* is_pads: their shared memory, without code; has no header */
	bool is_trap_handler; /* holds the handler of SIGTRAP; has no header */
	uint8_t *saved;       /* is_slack: the original contents; owned by the list */
};

struct own_memory {
	VEC(struct stub_area) areas;
	/* shared memory of its own pads; 0 = none. What a fork inherits is in the areas. */
	taddr_t shared;
	uint64_t shared_size;
	uint64_t mapped;      /* bytes of address space that ptmem uses in it */
};

/* For a fork, which has its parent's shared memory mapped, too. */
struct own_memory own_memory_clone(const struct own_memory *from);
/* Drops areas and shared memory; reuses the allocations. */
void own_memory_clear(struct own_memory *own);
void own_memory_deinit(struct own_memory *own);

/* The area that contains @addr, or NULL. */
const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr);
/* Whether ptmem mapped the memory at @addr; false for stubs at the end of a text. */
bool space_is_own(const struct address_space *s, taddr_t addr);

#endif
