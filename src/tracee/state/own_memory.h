/*
 * Memory of an address space that is ptmem's: areas for stubs and pads, and what pads share with
 * ptmem.
 */
#ifndef PTMEM_TRACEE_STATE_OWN_MEMORY_H
#define PTMEM_TRACEE_STATE_OWN_MEMORY_H

#include "base/types.h"
#include "base/vec.h"

struct address_space;

/* Room for stubs: inject/stub_area.h. */
struct stub_area {
	taddr_t start;
	uint32_t size, used;
	bool is_slack;
	bool is_pads;         /* holds pads, not stubs */
	bool is_memory;       /* is_pads: shared memory of theirs, no code; has no header */
	bool is_trap_handler; /* holds the handler of SIGTRAP; has no header */
	uint8_t *saved;       /* is_slack: what was there; owned by the list */
};

struct own_memory {
	VEC(struct stub_area) areas;
	/* the memory of pads, also its parent's, that is mapped in it; 0 = none */
	taddr_t shared;
	uint64_t shared_size;
	uint64_t mapped;      /* bytes of address space that ptmem has in it */
};

/* For a fork. */
struct own_memory own_memory_clone(const struct own_memory *from);
/* Forgets areas and shared memory; the same memory may be used again. */
void own_memory_clear(struct own_memory *own);
void own_memory_deinit(struct own_memory *own);

/* The area of ours that holds @addr, or NULL. */
const struct stub_area *space_find_area(const struct address_space *s, taddr_t addr);
/*
 * Whether @addr lies in memory that ptmem mapped into it; the end of a text where stubs are is
 * none.
 */
bool space_is_own(const struct address_space *s, taddr_t addr);

#endif
