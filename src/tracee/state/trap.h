/* A breakpoint in the tracee, and its handler. */
#ifndef PTMEM_TRACEE_STATE_TRAP_H
#define PTMEM_TRACEE_STATE_TRAP_H

#include "arch/arch.h"
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
	bool is_removed;           /* removed with its module; the slot is reused */
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

#endif
