/*
 * Blocks that are still there, by call path: what holds memory, since when, and,
 * after a leak check, whether anything still points to it.
 *
 *	live blocks -> sites (kind, path) with bytes, blocks, ages -> text or JSON
 *
 * Paths are those that massif reports show. Largest sites first; among equals
 * the one that allocated first.
 */
#ifndef PTMEM_OUTPUT_LEAKS_H
#define PTMEM_OUTPUT_LEAKS_H

#include "base/vec.h"
#include "output/report_tree.h"

/*
 * What a leak check found out about a block; LEAK_UNCHECKED: no check was made. In the order of
 * reports.
 */
enum leak_kind {
	LEAK_UNCHECKED, LEAK_DEFINITE, LEAK_INDIRECT, LEAK_POSSIBLE, LEAK_REACHABLE,
	LEAK_KIND_COUNT
};

struct leak_site {
	uint32_t node;           /* of the report tree: the outermost frame of the path */
	uint8_t kind;            /* enum leak_kind */
	uint64_t bytes;
	uint64_t blocks;         /* profile_count makes them whole, here and in struct leak_sum */
	uint64_t variance;       /* of the bytes; 0 unless they are estimates */
	/* when the first and the last block were made, profile_block_clock */
	uint32_t oldest, youngest;
};

struct leak_sum {
	uint64_t bytes, blocks, variance;
};

struct leaks {
	const struct report *report;  /* not owned */
	struct report_tree *tree;
	VEC(struct leak_site) sites;
	struct leak_sum sum[LEAK_KIND_COUNT];
	uint32_t *slot;               /* hash of (node, kind) -> site + 1 */
	uint32_t slot_bits;
	uint32_t now;                 /* profile_block_clock at the moment that is reported */
	uint32_t minimum_age;         /* ms; younger blocks are left out */
	bool is_checked;              /* a leak check found the kinds; set after leaks_init */
};

/* @report must outlive @l and its profile must not change meanwhile. */
void leaks_init(struct leaks *l, const struct report *report, uint32_t now, uint32_t minimum_age);
void leaks_deinit(struct leaks *l);

/* Counts a block; one that is too young or whose site the filter ignores is left out. */
void leaks_add(struct leaks *l, const struct block *block, enum leak_kind kind);
/* All live blocks of the profile, unchecked. */
void leaks_add_all(struct leaks *l);

/* Brings the sites into the order of reports; before writing. */
void leaks_sort(struct leaks *l);

/*
 * Calls @line for each line of the report (without newline), at most @max_sites sites. Of samples,
 * sites below resolution (profile/estimate.h) are one line.
 */
typedef void leaks_line_fn(void *ctx, const char *line);
void leaks_print(const struct leaks *l, size_t max_sites, leaks_line_fn *line, void *ctx);

/*
 * JSON, one object:
 *
 *	{"pid": N, "command": TEXT, "age": SECONDS, "bytes": N, "blocks": N,
 *	 "kinds": {KIND: {"bytes": N, "blocks": N}, ...},       only after a leak check
 *	 "sites": [{"kind": KIND or absent, "bytes": N, "blocks": N, "oldest": SECONDS,
 *	            "youngest": SECONDS, "stack": [{"address": "0x..", "function": TEXT,
 *	            "file": TEXT, "line": N, "object": TEXT}, ...]}, ...]}
 *
 * Of samples, "bytes" and "blocks" are estimates: each "bytes" is followed by "error", its standard
 * error, and the object begins with "heap_sample": BYTES.
 *
 * Stacks are innermost first; what is unknown is left out; inlined functions have
 * frames of their own with the same address. Text is UTF-8, whatever names hold.
 * Errors of the stream are left in it.
 */
void leaks_write_json(FILE *file, const struct leaks *l);

#endif
