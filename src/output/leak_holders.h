/*
 * What holds reachable blocks: chains of texts from a root to the site whose blocks hold others.
 *
 *	variable 'cache' (app) -> make_table (cache.c:20) -> make_entry (cache.c:31)
 *
 * Chains are a trie, so equal ones have equal numbers. A site that repeats, as in a list, is in a
 * chain once.
 */
#ifndef PTMEM_OUTPUT_LEAK_HOLDERS_H
#define PTMEM_OUTPUT_LEAK_HOLDERS_H

#include "base/types.h"
#include "base/vec.h"

#define LEAK_CHAIN_MAX 32u     /* links of a chain; what follows is added to the last one */

struct leak_link {
	uint32_t before;       /* chain; 0 = this is a root */
	uint32_t text, length; /* the number of its text; links of the chain */
};

/* Blocks of a site that a chain holds. */
struct leak_held {
	uint32_t site, chain;
	uint64_t bytes, blocks;
};

struct leak_holders {
	VEC(struct leak_link) links;  /* by chain; 0 is none */
	VEC(struct leak_held) held;   /* after leak_holders_sort by site, most bytes first */
	VEC(char *) text;             /* owned */
	/* private: hashes of links, of (site, chain), of texts */
	struct leak_holders_hash { uint32_t *slot; uint32_t bits, used; } link_hash, held_hash,
		text_hash;
};

void leak_holders_init(struct leak_holders *h);
void leak_holders_deinit(struct leak_holders *h);

/* The number of @text, which is copied. */
uint32_t leak_holders_text(struct leak_holders *h, const char *text);
/* The chain @before (0 = none), continued by @text. */
uint32_t leak_holders_link(struct leak_holders *h, uint32_t before, uint32_t text);
/* @chain holds a block of @bytes of @site. */
void leak_holders_add(struct leak_holders *h, uint32_t site, uint32_t chain, uint64_t bytes);

/* Sorts h->held. */
void leak_holders_sort(struct leak_holders *h);
/* The holders of @site, after leak_holders_sort: their number, the first is *first_out. */
size_t leak_holders_find(const struct leak_holders *h, uint32_t site, size_t *first_out);

#endif
