/*
 * Rules that were compiled for one ELF file, by the file's addresses: what one process, or a guess
 * that failed on one stack, has paid for is there for all others. A hash table that only grows.
 */
#ifndef PTMEM_UNWIND_KNOWN_RULES_H
#define PTMEM_UNWIND_KNOWN_RULES_H

#include "arch/unwind_rule.h"
#include "base/types.h"

struct known_rule {
	struct unwind_rule rule; /* its pc is not set */
	uint64_t vaddr;
	bool is_exact, is_guess; /* as rules_compile has them */
	bool is_used;
};

struct known_rules {
	struct known_rule *slot; /* open addressing, at most half full; owned */
	size_t count, capacity;
};

/* NULL when it was not compiled yet. Valid until the next known_rules_add. */
const struct known_rule *known_rules_find(const struct known_rules *k, uint64_t vaddr,
					  bool is_exact);
/* @rule was not found before. */
void known_rules_add(struct known_rules *k, const struct known_rule *rule);
void known_rules_deinit(struct known_rules *k);

#endif
