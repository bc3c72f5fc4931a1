/*
 * Describes code that ptmem put into a space to an unwinder: stubs, pads, the recorder, moved
 * instructions. A thread inside a watched call returns into a stub or a pad first, so that address
 * is on its stack. The frame layout of both is fixed (arch.h, pad.h).
 */
#ifndef PTMEM_TRACEE_PADS_OWN_CODE_H
#define PTMEM_TRACEE_PADS_OWN_CODE_H

#include "base/types.h"
#include "tracee/state/module.h"

struct address_space;
struct target;

enum own_kind {
	OWN_CALL,  /* a return address: the next frame is the caller of the watched function */
	OWN_MOVED, /* a copy of an instruction of the program, or equivalent to a function entry */
	OWN_FRAME, /* a frame of a pad or of the recorder, described by CFI */
};

struct own_place {
	taddr_t pc;
	bool is_exact;         /* pc is an interrupted instruction, not a return address */
};

struct own_code {
	enum own_kind kind;
	taddr_t pc;            /* MOVED: address of the original; CALL: 0, it is below the CFA */
	uint32_t up;           /* CALL, MOVED: offset to the stack pointer there */
	/* FRAME */
	const struct module *module; /* file and bias that describe it, valid until the next call */
	taddr_t entry_pc;    /* the watched function's entry; 0 = none, the frame is hidden */
};

/* Describes @place if it is in code of ours. False if it is not, or cannot be described. */
bool own_code_find(struct target *t, const struct address_space *s, const struct own_place *place,
		   struct own_code *out);
/* Frees what own_code_find caches in @t. */
void own_code_free(struct target *t);

#endif
