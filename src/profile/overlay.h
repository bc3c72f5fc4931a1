/*
 * Several blocks at one address. A program that announces the blocks of its own allocator
 * (FUNCTION_REQUEST) gets their memory from malloc, for example: then its first block often has the
 * same address as the malloc'ed one. Both are live, as in Massif (doc/massif.md 2.12): the newest
 * is found first, and a release ends the newest.
 *
 *	tables of the profile    the newest block of each address
 *	covered                  the older ones, by address, newest first
 *
 * This is created when the program announces its first block. From then on a malloc'ed block, too,
 * covers a live one at its address: a real free may have ended the announced block instead of the
 * real one.
 */
#ifndef PTMEM_PROFILE_OVERLAY_H
#define PTMEM_PROFILE_OVERLAY_H

#include "base/types.h"
#include "base/vec.h"
#include "profile/blocks.h"

struct profile;

struct covered {
	struct block block;
	uint32_t below;       /* index of the next older one; 0 = none */
	bool is_counted;      /* false: it belongs to an ignored site */
	bool is_request;
	bool is_used;
};

struct overlay {
	struct blocks *request; /* the addresses whose newest block was announced */
	struct blocks *top;     /* by address: the index of the newest covered block, as size */
	VEC(struct covered) list; /* [0] is not used */
	uint32_t free;          /* head of the list of free entries; 0 = none */
};

struct overlay *overlay_new(void);
struct overlay *overlay_clone(const struct overlay *o); /* NULL gives NULL */
void overlay_free(struct overlay *o);                   /* may be NULL */

/* A block is about to be added at @addr: covers the live block there, if any. */
void overlay_push(struct profile *p, taddr_t addr, bool is_request);
/* The newest block at @addr was removed from its table: restores the one below it. */
void overlay_pop(struct profile *p, taddr_t addr);

/* Calls @fn for each covered block that counts, until it returns non-zero. NULL has none. */
int overlay_each(const struct overlay *o, int (*fn)(void *ctx, const struct block *block),
		 void *ctx);

#endif
