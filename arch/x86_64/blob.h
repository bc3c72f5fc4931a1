/*
 * The recorder's own view of a pad: what the template (blob_pad.S) pushes and what
 * pad.c writes before the template's code; and the table at the blob's start.
 */
#ifndef PTMEM_ARCH_X86_64_BLOB_H
#define PTMEM_ARCH_X86_64_BLOB_H

#include "arch/pad.h"
#include "arch/x86_64/pad_layout.h"

struct x86_pad_head {
	uint64_t control; /* address of struct pad_control */
	uint64_t enter, leave, raw, finish; /* functions of the blob */
	uint64_t after; /* of a marker: the address behind it */
	struct pad_probe probe;
};
_Static_assert(sizeof(struct x86_pad_head) == PAD_HEAD_SIZE, "as in pad_layout.h");

/* The registers that a pad saved; return_slot is the word that the stack pointer was at. */
struct x86_pad_stack {
	uint64_t rdx, rsi, rdi, rax, return_slot;
};

/* Callee-saved registers as pushed before the raw recorder. */
struct x86_pad_saved {
	uint64_t rbx, rbp, r12, r13, r14, r15;
};

/* The table at the start of the blob, offsets from there. */
struct x86_blob_table {
	uint32_t magic;
	uint32_t enter_call, enter_plain, enter_free, enter_throw, enter_marker, leave, leave_plain, raw, raw_marker, finish,
		full_trap;
	struct {
		uint32_t start, entry, entry_trap, after, leave_trap, moved, end, back, ret, tail;
	} call, jump, marker; /* the templates; 0 where there is none of it */
};

#endif
