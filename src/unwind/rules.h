/*
 * The table of rules (arch/unwind_rule.h) and the compiler that fills it from
 * CFI, one code address at a time.
 */
#ifndef PTMEM_UNWIND_RULES_H
#define PTMEM_UNWIND_RULES_H

#include "unwind/unwind.h"

struct rules {
	const struct arch *arch;
	const struct unwind_ops *ops;
	struct unwind_rule_table table;
	struct unwind_rule *own;        /* table.slot while it is in our memory, else NULL */
	struct unwind_rule spare;       /* answers what is not entered into the table */
	void (*on_full)(void *ctx);
	void *on_full_ctx;
	bool is_full_told;              /* on_full was called for this memory */
	uint64_t compiled;
};

void rules_init(struct rules *r, const struct arch *arch, const struct unwind_ops *ops);
void rules_deinit(struct rules *r);

/* The rule for the return address @pc, compiled if it is new. Valid until the next call. */
const struct unwind_rule *rules_get(struct rules *r, taddr_t pc);

/*
 * Compiles the rule for @pc without entering it: a return address, or, where
 * @is_exact, an interrupted instruction. Leaves rule_out->pc alone.
 */
void rules_compile(const struct rules *r, taddr_t pc, bool is_exact, struct unwind_rule *rule_out);

void rules_forget(struct rules *r, taddr_t start, taddr_t end);
void rules_set_memory(struct rules *r, struct unwind_rule *memory, uint32_t bits);

#endif
