/*
 * Which call sites hold memory now, and how that changes: the table of --top,
 * without any terminal.
 *
 *	leaves -> sites (innermost shown frame) -> rows with live bytes, growth, rate
 *
 * A site is where the program calls an allocation function; its leaves are the
 * call paths that lead there. Leaves never go, so a leaf's site is looked up once.
 */
#ifndef PTMEM_OUTPUT_TOP_TABLE_H
#define PTMEM_OUTPUT_TOP_TABLE_H

#include "base/vec.h"
#include "output/writer.h"

enum top_order { TOP_LIVE, TOP_GROWTH, TOP_SINCE_START, TOP_RATE, TOP_ORDER_COUNT };

struct top_site {
	uint32_t frame;        /* of the call tree; 0 = no frame is known */
	uint32_t leaf;         /* the one that holds most now */
	uint64_t live, blocks; /* now */
	uint64_t total;        /* bytes ever allocated */
	int64_t growth;        /* of live, since the last update */
	int64_t since_start;   /* of live, since the first update or top_table_restart */
	double rate;           /* bytes allocated a second, since the last update */
	uint64_t leaf_live;    /* of leaf */
	uint64_t start_live, last_live, last_total;
};

struct top_table {
	VEC(struct top_site) sites; /* in no order that means anything */
	VEC(uint32_t) site_of;      /* by leaf: index into sites */
	VEC(uint32_t) order;        /* of sites, after top_table_sort */
	uint64_t time_ns;           /* of the last update; 0 = none yet */
};

void top_table_deinit(struct top_table *t); /* all zero = empty */

/* Takes the numbers of @r's profile at @time_ns. Frames that the filter leaves out are no sites. */
void top_table_update(struct top_table *t, const struct report *r, uint64_t time_ns);

/* since_start counts from now on. */
void top_table_restart(struct top_table *t);

/* Largest first; among equals by live bytes, then the one that allocated first. */
void top_table_sort(struct top_table *t, enum top_order by);

/* "1.5 GB" of @bytes, with '+' or '-' if @is_change; at most 12 characters. */
const char *top_bytes(char out[static 16], double bytes, bool is_change);

#endif
