/*
 * The rules compiled for one ELF file, by address in the file. They are shared: a rule compiled for
 * one process, or a guess that failed on one stack, is known to all others. A hash table that only
 * grows.
 */
#ifndef PTMEM_UNWIND_KNOWN_RULES_H
#define PTMEM_UNWIND_KNOWN_RULES_H

#include "arch/unwind_rule.h"
#include "base/types.h"

struct known_rule {
	struct unwind_rule rule; /* its pc is unset */
	uint64_t vaddr;
	bool is_exact, is_guess; /* as for rules_compile */
	bool is_used;
};

struct known_rules {
	struct known_rule *slot; /* open addressing, at most half full; owned */
	size_t count, capacity;
};

/* NULL if it has not been compiled yet. Valid until the next known_rules_add. */
const struct known_rule *known_rules_find(const struct known_rules *k, uint64_t vaddr,
					  bool is_exact);
/* @rule must not be in the table yet. */
void known_rules_add(struct known_rules *k, const struct known_rule *rule);
void known_rules_deinit(struct known_rules *k);

#endif
