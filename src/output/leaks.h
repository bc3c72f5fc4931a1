/*
 * Live blocks by call path: what holds memory, since when, and, after a leak check, whether
 * anything still points to it.
 *
 *	live blocks -> sites (kind, path) with bytes, blocks, ages -> text or JSON
 *
 * A lost tree is one record, as in memcheck: the site of its definitely lost block has the sum of
 * the indirectly lost ones, which have sites of their own, too.
 *
 * Paths are the same as in massif reports, but recursion is merged: of calls that repeat, of up to
 * four functions, only the innermost are kept. Largest sites first; of equal ones, the one that
 * allocated first.
 */
#ifndef PTMEM_OUTPUT_LEAKS_H
#define PTMEM_OUTPUT_LEAKS_H

#include "base/vec.h"
#include "output/leak_holders.h"
#include "output/report_tree.h"
#include "output/suppressions.h"

/*
 * The result of a leak check for a block; LEAK_UNCHECKED: no check was made. In the order of
 * reports.
 */
enum leak_kind {
	LEAK_UNCHECKED, LEAK_DEFINITE, LEAK_INDIRECT, LEAK_POSSIBLE, LEAK_REACHABLE,
	LEAK_KIND_COUNT
};

struct leak_site {
	/* of the report tree: the outermost frame of its longest path, with the most recursion */
	uint32_t node;
	uint32_t length;         /* frames of that */
	uint32_t id;             /* its number before leaks_sort, also in leak_holders */
	uint64_t path;           /* hash of the merged path */
	uint32_t first_leaf;     /* of that node: which of equal sites comes first */
	uint8_t kind;            /* enum leak_kind */
	uint64_t bytes;
	uint64_t blocks;         /* in units of profile_count, here and in struct leak_sum */
	uint64_t variance;       /* of the bytes; 0 unless they are estimates */
	uint64_t indirect_bytes, indirect_blocks; /* lost with these blocks */
	/* when the first and the last block were allocated, profile_block_clock */
	uint32_t oldest, youngest;
};

struct leak_sum {
	uint64_t bytes, blocks, variance;
};

#define LEAK_NO_SITE UINT32_MAX

struct leaks {
	const struct report *report;  /* not owned */
	struct report_tree *tree;
	VEC(struct leak_site) sites;
	struct leak_sum sum[LEAK_KIND_COUNT];
	struct leak_sum younger;      /* left out */
	VEC(struct leak_sum) suppressed; /* likewise, by suppression */
	uint32_t *slot;               /* hash of (path, kind) -> site + 1 */
	uint32_t slot_bits;
	VEC(uint32_t) suppression;    /* by node and kind, encoded; 0 = not known yet */
	/* by node: leak_site.path, frames; 0 = not known yet */
	VEC(struct leak_path { uint64_t hash; uint32_t length; }) path;
	VEC(uint64_t) function;       /* by frame: a hash of its function; 0 = not known yet */
	uint32_t now;                 /* profile_block_clock at the time of the report */
	uint32_t minimum_age;         /* ms; younger blocks are left out */
	/* set after leaks_init: */
	bool is_checked;              /* a leak check set the kinds */
	uint32_t shown_kinds;         /* in texts; a bit for each enum leak_kind */
	bool has_entries;             /* print suppressions that would match */
	const struct suppressions *suppressions; /* not owned; NULL = none */
	struct leak_holders *holders; /* of sites; not owned; NULL = unknown */
};

/* @report must outlive @l; its profile must not change meanwhile. */
void leaks_init(struct leaks *l, const struct report *report, uint32_t now, uint32_t minimum_age);
void leaks_deinit(struct leaks *l);

/*
 * Counts a block, unless it is too young, suppressed, or the filter ignores its site. Returns its
 * site's id, LEAK_NO_SITE if it was not counted.
 */
uint32_t leaks_add(struct leaks *l, const struct block *block, enum leak_kind kind);
/*
 * The same for an indirectly lost block and the definitely lost one that leads to it, which was
 * added before; they are left out together.
 */
void leaks_add_follower(struct leaks *l, const struct block *block, const struct block *leader);
/* All live blocks of the profile, unchecked. */
void leaks_add_all(struct leaks *l);

/* Sorts the sites for reports; call it before writing. */
void leaks_sort(struct leaks *l);

#endif
