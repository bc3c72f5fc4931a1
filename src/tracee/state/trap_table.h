/* The breakpoints in one address space, by address. */
#ifndef PTMEM_TRACEE_STATE_TRAP_TABLE_H
#define PTMEM_TRACEE_STATE_TRAP_TABLE_H

#include <stddef.h>

#include "base/types.h"
#include "tracee/state/trap.h"

struct address_space;
struct arch;
struct module;

/* All that were ever installed; a VEC with a hash index. */
struct trap_table {
	struct trap *data;
	size_t count, capacity;
	uint32_t *index;      /* hash table: address -> position in data + 1; NULL = empty */
	uint32_t bits;        /* log2 of the size of index */
};

/* For a fork. */
struct trap_table trap_table_clone(const struct trap_table *from);
void trap_table_clear(struct trap_table *table);
void trap_table_deinit(struct trap_table *table);

/* The trap at @addr, or NULL. */
struct trap *space_trap_find(const struct address_space *s, taddr_t addr);
/* Only adds @trap. */
void space_trap_add(struct address_space *s, const struct trap *trap);
/* Adds @trap, whose breakpoint is part of code of ours, and records it. */
void space_trap_note(struct address_space *s, const struct arch *arch, const struct trap *trap);
/*
 * space_trap_put writes a breakpoint: space_trap_prepare adds @trap and records it, and
 * space_trap_arm then writes the breakpoint of the trap at @addr, or drops the trap.
 * space_trap_take restores the text.
 */
int space_trap_prepare(struct address_space *s, const struct arch *arch, const struct trap *trap);
int space_trap_arm(struct address_space *s, const struct arch *arch, taddr_t addr);
int space_trap_put(struct address_space *s, const struct arch *arch, const struct trap *trap);
int space_trap_take(struct address_space *s, const struct arch *arch, struct trap *trap);
/* The original address for @pc, which may be in the stub of a TRAP_SYSCALL. */
taddr_t space_original_pc(const struct address_space *s, const struct arch *arch, taddr_t pc);
/* How many watched functions have jumps to pads, and how many breakpoints. */
void space_count_probes(const struct address_space *s, uint32_t *jumps_out,
			uint32_t *breakpoints_out);
/* The same for markers. */
void space_count_markers(const struct address_space *s, uint32_t *jumps_out,
			 uint32_t *breakpoints_out);

/* @m was unmapped: its traps are gone. */
void space_traps_of_module_gone(struct address_space *s, const struct module *m);
/* Like space_read, but without our breakpoints inside of functions. */
int space_read_text(const struct address_space *s, taddr_t addr, void *buf, size_t size);

#endif
