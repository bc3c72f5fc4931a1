/*
 * Breakpoints in an address space: what each is for and which function handles it, and the table
 * that finds them by address.
 */
#ifndef PTMEM_TRACEE_STATE_TRAP_TABLE_H
#define PTMEM_TRACEE_STATE_TRAP_TABLE_H

#include <stddef.h>

#include "arch/arch.h"
#include "base/hash.h"
#include "base/types.h"

struct probe;

enum trap_kind {
	TRAP_ENTRY,  /* at the first instruction of a probed function */
	TRAP_RETURN, /* in a stub, after the call of the original */
	TRAP_START,  /* at the program's first instruction */
	/* at a system call instruction; stub.jump: a copy of it, and back (syscall_sites.h) */
	TRAP_SYSCALL,
	TRAP_AGAIN,  /* where a watched function jumps to its start; stub.jump: that function's */
	TRAP_PAD_EXIT, /* at an exit of a pad, while threads leave pads; stub.jump: outside */
	TRAP_PAD_ENTRY, TRAP_PAD_LEAVE, TRAP_PAD_FULL, /* in a pad or its recorder; arch/pad.h */
};

/* How a stop at a trap was handled. */
enum trap_answer { TRAP_NOT_OURS, TRAP_RESUME };

struct target;
struct thread;
struct trap;

/*
 * Handles a stop of @th at @trap with @regs, and sets its pc. The table may have moved
 * afterwards.
 */
typedef enum trap_answer trap_fn(struct target *t, struct thread *th, struct trap *trap,
				 struct arch_regs *regs);

/* A breakpoint in the target's text. */
struct trap {
	taddr_t addr;
	uint8_t original[8];       /* the original bytes (TRAP_RETURN: none) */
	uint8_t patch_size;        /* their number: the size of a breakpoint, or of a jump */
	uint8_t kind;              /* enum trap_kind */
	bool is_leaf;              /* as in struct probe_site */
	uint8_t guess;             /* likewise */
	bool is_removed;           /* removed with its module; the slot is reused */
	bool is_idle;              /* the text is as it was, though threads may have stopped here */
	trap_fn *serve;            /* set by the module that installed it */
	const struct probe *probe; /* TRAP_ENTRY, TRAP_RETURN */
	struct arch_stub stub;
	taddr_t entry;             /* of the function; addr may be after an endbr64 */
	uint32_t code_size;        /* of the function, bytes */
	uint32_t module;           /* module id */
	/* index + 1 of its pad; 0 = none. TRAP_PAD_*: of the pad that contains it */
	uint32_t pad;
	uint32_t marker;           /* TRAP_ENTRY at a marker: its index in the module's list */
	taddr_t semaphore;         /* semaphore raised for it; 0 = none */
	bool is_cold;              /* cannot be promoted, or not at present */
	const char *why_cold;
	uint64_t hits;             /* TRAP_ENTRY: stops at it */
};

/* The breakpoints in one address space, by address. */

struct address_space;
struct arch;
struct module;

/* All that were ever installed; a VEC with a hash index. */
struct trap_table {
	struct trap *data;
	size_t count, capacity;
	HASH(uint32_t) by_addr; /* positions in data */
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
