/*
 * How to unwind one frame, compiled from CFI, for one code address.
 *
 * Written by src/unwind (which compiles rules by libdw), read by it and by the recorder inside the
 * target. The table is in plain memory so that it can be shared: open addressing, linear probing, a
 * power of two of slots, keyed by the exact code address (a return address as it is on the stack,
 * or an interrupted pc). A slot is published by storing pc last.
 *
 * Terms: CFA = canonical frame address, the value of the stack pointer in the
 * caller before the call. The return address is at CFA + 8 * unwind_return_slot().
 */
#ifndef PTMEM_ARCH_UNWIND_RULE_H
#define PTMEM_ARCH_UNWIND_RULE_H

#include <stdint.h>

#include "arch/arch_cpu.h"

enum unwind_rule_kind {
	RULE_NONE,     /* empty slot */
	RULE_SP,       /* CFA = stack pointer + cfa_offset */
	RULE_FP,       /* CFA = frame pointer + cfa_offset */
	RULE_FP_DEREF, /* CFA = *(frame pointer + cfa_offset): a realigned stack; slots count
			* from the (callee's) frame pointer, as compilers describe it
			*/
	RULE_REG,      /* CFA = callee-saved register number reg + cfa_offset */
	RULE_END,      /* outermost frame: the return address is undefined */
	RULE_SP_DEREF, /* CFA = *(stack pointer + 8 * slot[SWITCH_DEPTH]) + cfa_offset */
	/*
	 * The caller is on another stack, that of a goroutine (Go's runtime.asmcgocall). With
	 * words that struct unwind_rule.slot[] places, 8 bytes each:
	 *	g   = *(stack pointer + SWITCH_G)
	 *	CFA = *(g + SWITCH_TOP) - *(stack pointer + SWITCH_DEPTH) + cfa_offset
	 */
	RULE_SWITCH,
	RULE_LOST,     /* the caller is somewhere else, and no method finds it */
	RULE_SLOW,     /* only the fallback can unwind it (signal frame, expression, no CFI) */
};

/*
 * Decoded from instructions, since there is no CFI. If it leads to a return address that ends a
 * stack (unwind_is_end), that may be any word that is 0, so the stack is not complete.
 */
enum unwind_rule_flag { RULE_GUESSED = 1 };

struct unwind_rule {
	uint64_t pc;                  /* key; 0 = empty */
	int32_t cfa_offset;           /* bytes */
	uint8_t kind;                 /* enum unwind_rule_kind */
	uint8_t reg;                  /* RULE_REG: index into the callee-saved registers */
#if RULE_SAVED_REGS > 8
	uint16_t saved;
#else
	uint8_t saved;                /* bit i: callee-saved register i is at CFA + 8 * slot[i]
				       * (RULE_FP_DEREF: at frame pointer + 8 * slot[i]) */
#endif
	uint8_t flags;                /* enum unwind_rule_flag */
#ifndef RULE_RETURN_SLOT
	int16_t return_slot;          /* RULE_LINK, or words from where slot[] counts */
#endif
	/*
	 * words relative to the CFA (RULE_FP_DEREF: to the frame pointer); RULE_SP_DEREF and
	 * RULE_SWITCH save at most the frame pointer: others are enum unwind_switch
	 */
	int16_t slot[RULE_SAVED_REGS];
	/*
	 * RULE_SWITCH: bytes from the thread pointer to the word with the thread's own g; 0 =
	 * unknown
	 */
	int32_t own_g;
};

#define RULE_LINK INT16_MAX /* as a return slot: the return address is still in its register */

/* Where a frame with @rule has its return address: in words, as struct unwind_rule.slot. */
static inline int64_t unwind_return_slot(const struct unwind_rule *rule)
{
#ifdef RULE_RETURN_SLOT
	(void)rule;
	return RULE_RETURN_SLOT;
#else
	return rule->return_slot;
#endif
}

/* Sets that: false if rules of this CPU cannot say it. */
static inline int unwind_set_return_slot(struct unwind_rule *rule, int64_t slot)
{
#ifdef RULE_RETURN_SLOT
	(void)rule;
	return slot == RULE_RETURN_SLOT;
#else
	rule->return_slot = (int16_t)slot;
	return slot == rule->return_slot;
#endif
}

/*
 * Where a switch of stacks keeps what leads back, in words: indexes of struct unwind_rule.slot.
 * SWITCH_START and SWITCH_FRAME tell whether a frame is really the one that switched last: the
 * stack that it switched to began at the word SWITCH_START of the thread's own g, and its stack
 * pointer is SWITCH_FRAME words below that, rounded down to 16 bytes.
 */
enum unwind_switch {
	SWITCH_G = 1,
	SWITCH_DEPTH,
	SWITCH_TOP,
	SWITCH_START,
	SWITCH_FRAME,
};

/* Whether a stack ends if its return address is @pc: 0, or 1 after a _start that claims to have a
 * caller (written in C, for example): that word is argc. */
static inline int unwind_is_end(uint64_t pc)
{
	return pc <= 1;
}

struct unwind_rule_table {
	struct unwind_rule *slot; /* 1 << bits of them */
	uint32_t bits;
	uint32_t used;            /* slots with a pc (including forgotten ones) */
};

/* First slot to probe for @pc in a table of 1 << @bits slots. */
static inline uint32_t unwind_rule_hash(uint64_t pc, uint32_t bits)
{
	return (uint32_t)(pc * 0x9e3779b97f4a7c15ull >> (64 - bits));
}

/* The rule for exactly @pc, or NULL. Safe with a concurrent writer. */
static inline const struct unwind_rule *unwind_rule_find(const struct unwind_rule *slot,
							 uint32_t bits,
							  uint64_t pc)
{
	uint32_t mask = (1u << bits) - 1;
	for (uint32_t i = unwind_rule_hash(pc, bits), n = 0; n <= mask; i = (i + 1) & mask, n++) {
		uint64_t key = __atomic_load_n(&slot[i].pc, __ATOMIC_ACQUIRE);
		if (key == pc)
			return &slot[i];
		if (key == 0)
			return 0;
	}
	return 0;
}

#endif
