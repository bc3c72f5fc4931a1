/*
 * The table of rules (arch/unwind_rule.h) and the compiler that fills it from
 * CFI, one code address at a time.
 */
#ifndef PTMEM_UNWIND_RULES_H
#define PTMEM_UNWIND_RULES_H

#include "base/vec.h"
#include "unwind/unwind.h"

struct rules {
	const struct arch *arch;
	const struct unwind_ops *ops;
	struct unwind_rule_table table;
	struct unwind_rule *shared;     /* a copy of the table, never read; NULL = none */
	/* slots with a rule that is not forgotten */
	VEC(uint32_t) live;
	struct unwind_rule spare;       /* holds answers that are not entered into the table */
	void (*on_full)(void *ctx);
	void *on_full_ctx;
	bool is_full_reported;              /* on_full was called for this memory */
	uint64_t compiled;
};

void rules_init(struct rules *r, const struct arch *arch, const struct unwind_ops *ops);
void rules_deinit(struct rules *r);

/* The rule for the return address @pc if it is in the table, else NULL. */
static inline const struct unwind_rule *rules_find(const struct rules *r, taddr_t pc)
{
	const struct unwind_rule *rule = unwind_rule_find(r->table.slot, r->table.bits, pc);

	return rule && rule->kind != RULE_NONE ? rule : NULL;
}

/*
 * Compiles the rule for @pc without entering it. @pc is a return address, or, if @is_exact, the
 * address of an interrupted instruction. True if the rule is only a guess from reading the code:
 * check it before entering it.
 */
bool rules_compile(const struct rules *r, taddr_t pc, bool is_exact, struct unwind_rule *rule_out);

/* Enters a rule for a return address that has none. The result is valid until the next call. */
const struct unwind_rule *rules_enter(struct rules *r, const struct unwind_rule *rule);

void rules_forget(struct rules *r, taddr_t start, taddr_t end);
void rules_set_memory(struct rules *r, struct unwind_rule *memory, uint32_t bits);

#endif
