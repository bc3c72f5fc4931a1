/*
 * Live blocks by call path: what holds memory, since when, and, after a leak check, whether
 * anything still points to it.
 *
 *	live blocks -> sites (kind, path) with bytes, blocks, ages -> text or JSON
 *
 * Paths are the same as in massif reports. Largest sites first; of equal ones, the one that
 * allocated first.
 */
#ifndef PTMEM_OUTPUT_LEAKS_H
#define PTMEM_OUTPUT_LEAKS_H

#include "base/vec.h"
#include "output/report_tree.h"

/*
 * The result of a leak check for a block; LEAK_UNCHECKED: no check was made. In the order of
 * reports.
 */
enum leak_kind {
	LEAK_UNCHECKED, LEAK_DEFINITE, LEAK_INDIRECT, LEAK_POSSIBLE, LEAK_REACHABLE,
	LEAK_KIND_COUNT
};

struct leak_site {
	uint32_t node;           /* of the report tree: the outermost frame of the path */
	uint32_t first_leaf;     /* of that node: which of equal sites comes first */
	uint8_t kind;            /* enum leak_kind */
	uint64_t bytes;
	uint64_t blocks;         /* in units of profile_count, here and in struct leak_sum */
	uint64_t variance;       /* of the bytes; 0 unless they are estimates */
	/* when the first and the last block were allocated, profile_block_clock */
	uint64_t oldest, youngest;
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
	uint64_t now;                 /* profile_block_clock at the time of the report */
	uint64_t minimum_age;         /* us; younger blocks are left out */
	bool is_checked;              /* a leak check set the kinds; set after leaks_init */
};

/* @report must outlive @l; its profile must not change meanwhile. */
void leaks_init(struct leaks *l, const struct report *report, uint64_t now, uint64_t minimum_age);
void leaks_deinit(struct leaks *l);

/* Counts a block, unless it is too young or the filter ignores its site. */
void leaks_add(struct leaks *l, const struct block *block, enum leak_kind kind);
/* All live blocks of the profile, unchecked. */
void leaks_add_all(struct leaks *l);

/* Sorts the sites for reports; call it before writing. */
void leaks_sort(struct leaks *l);

/*
 * Calls @line for each line of the report (without newline), for at most @max_sites sites. With
 * samples, sites below resolution (profile/estimate.h) share one line.
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
 * With samples, "bytes" and "blocks" are estimates: each "bytes" is followed by "error", its
 * standard error, and the object begins with "heap_sample": BYTES.
 *
 * Stacks are innermost first; unknown values are left out; inlined functions have their own frames
 * with the same address. Text is valid UTF-8. The caller checks the stream for errors.
 */
void leaks_write_json(FILE *file, const struct leaks *l);

#endif
