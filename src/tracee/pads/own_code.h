/*
 * Code that ptmem put into a space, as an unwinder sees it: stubs, pads, the recorder, moved
 * instructions. A thread inside a watched call returns into a stub or a pad first, so that address
 * is on its stack; the frame layout of both is fixed (arch.h, pad.h).
 */
#ifndef PTMEM_TRACEE_PADS_OWN_CODE_H
#define PTMEM_TRACEE_PADS_OWN_CODE_H

#include "base/types.h"
#include "tracee/state/module.h"

struct address_space;
struct target;

enum own_kind {
	OWN_CALL,  /* a return address: the caller of the watched function is the next frame */
	OWN_MOVED, /* a copy of an instruction of the program, or what is like one of its entries */
	OWN_FRAME, /* a frame of a pad or of the recorder, which CFI describes */
};

struct own_place {
	taddr_t pc;
	bool is_exact;         /* pc is an interrupted instruction, not a return address */
};

struct own_code {
	enum own_kind kind;
	taddr_t pc;            /* MOVED: where it was copied from; CALL: 0, it is below the CFA */
	uint32_t up;           /* CALL, MOVED: the stack pointer there is so much higher */
	/* FRAME */
	const struct module *module; /* file and bias that describe it, until the next call */
	taddr_t stands_for;    /* the watched function's entry; 0 = none, the frame is left out */
};

/* What is at @place in code of ours. False: it is none, or cannot be explained. */
bool own_code_find(struct target *t, const struct address_space *s, const struct own_place *place,
		   struct own_code *out);
/* Frees what own_code_find keeps in @t. */
void own_code_free(struct target *t);

#endif
