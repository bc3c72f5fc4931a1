/* See known_rules.h. */
#include "unwind/known_rules.h"

#include <stdlib.h>

#include "base/alloc.h"

#define FIRST_CAPACITY 256u

static struct known_rule *slot_of(const struct known_rules *k, uint64_t vaddr, bool is_exact)
{
	size_t i = hash_u64(2 * vaddr + is_exact) & (k->capacity - 1);

	while (k->slot[i].is_used &&
	       (k->slot[i].vaddr != vaddr || k->slot[i].is_exact != is_exact))
		i = (i + 1) & (k->capacity - 1);
	return &k->slot[i];
}

const struct known_rule *known_rules_find(const struct known_rules *k, uint64_t vaddr,
					  bool is_exact)
{
	const struct known_rule *found = k->count ? slot_of(k, vaddr, is_exact) : NULL;

	return found && found->is_used ? found : NULL;
}

static void grow(struct known_rules *k)
{
	const struct known_rules old = *k;

	k->capacity = old.capacity ? 2 * old.capacity : FIRST_CAPACITY;
	k->slot = xcalloc(k->capacity, sizeof(*k->slot));
	for (size_t i = 0; i < old.capacity; i++)
		if (old.slot[i].is_used)
			*slot_of(k, old.slot[i].vaddr, old.slot[i].is_exact) = old.slot[i];
	free(old.slot);
}

void known_rules_add(struct known_rules *k, const struct known_rule *rule)
{
	if (2 * (k->count + 1) > k->capacity)
		grow(k);
	struct known_rule *slot = slot_of(k, rule->vaddr, rule->is_exact);

	*slot = *rule;
	slot->is_used = true;
	k->count++;
}

void known_rules_deinit(struct known_rules *k)
{
	free(k->slot);
	*k = (struct known_rules){0};
}
