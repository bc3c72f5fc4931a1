/*
 * The call sites of blocks in a file of events. Hides: where names come from: the file has those of
 * interpreted and generated code; others are looked up in the objects at their paths, as by ptmem
 * --replay.
 */
#ifndef PTMEM_REPORT_WHATIF_BLOCK_SITES_H
#define PTMEM_REPORT_WHATIF_BLOCK_SITES_H

#include "base/types.h"
#include "profile/calltree.h"
#include "profile/events.h"
#include "symbols/code_owner.h"

struct block_sites;

/* @my_code: the caller's, may be NULL. */
struct block_sites *block_sites_new(const struct my_code *my_code);
void block_sites_free(struct block_sites *s);

/* For the nodes of the file. */
struct calltree *block_sites_calltree(struct block_sites *s);
void block_sites_add_module(struct block_sites *s, const struct events_module *m);
void block_sites_add_name(struct block_sites *s, const struct events_name *n);

/* The number of the call site of @node, from 0; after all names are known. */
uint32_t block_sites_find(struct block_sites *s, uint32_t node);

/* Moves the names of the call sites to the caller, who frees each, and the array. */
void block_sites_take_names(struct block_sites *s, char ***name_out, size_t *count_out);

#endif
