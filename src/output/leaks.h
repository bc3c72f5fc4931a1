/*
 * Live blocks by call path: what holds memory, since when, and, after a leak check, whether
 * anything still points to it; the leaks that reports leave out (suppressions.c), what holds
 * reachable blocks, and the reports as text and JSON (leaks_print.c).
 */
#ifndef PTMEM_OUTPUT_LEAKS_H
#define PTMEM_OUTPUT_LEAKS_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/heap_calls.h"
#include "base/types.h"
#include "output/brief.h"
#include "output/report_tree.h"

/*
 * Known leaks, which reports leave out: files in Valgrind's format (its manual, 2.5), of whose
 * entries those for Memcheck:Leak count.
 *
 *	{
 *	   NAME
 *	   Memcheck:Leak
 *	   match-leak-kinds: KIND[,KIND]...     definite, indirect, possible, reachable, all
 *	   fun:PATTERN                          a function: mangled, or as in reports
 *	   obj:PATTERN                          the path of a program or library
 *	   src:PATTERN[:LINE]                   the base name of a source file
 *	   ...                                  any number of frames, also none
 *	}
 *
 * The lines match a stack from its innermost frame on; the stack may have more frames. In
 * Valgrind's stacks that is malloc, operator new and the like, which ptmem's stacks do not have: a
 * first line for such a function matches them, too.
 */

struct suppressions;

/* A frame of a stack. NULL = unknown. */
struct suppression_frame {
	const char *name;   /* as in reports */
	const char *raw;    /* as in symbol tables; of an inlined function: without its scope */
	const char *object;
	const char *file;   /* base name of the source */
	uint32_t line;
	bool is_repeated;   /* more calls of the same functions follow, which are left out */
};

/*
 * Reads the files at @path (@count). NULL after a message if one cannot be read or has an error.
 */
struct suppressions *suppressions_read(const char *const *path, size_t count);
void suppressions_free(struct suppressions *s); /* may be NULL */

/* The name of one: "NAME (FILE:LINE)". */
const char *suppressions_name(const struct suppressions *s, uint32_t index);

/*
 * Whether one matches a leak with the stack @frame (@count, innermost first). @kind: the number of
 * its kind in "match-leak-kinds:" above, 0 = definite. *index_out: the first that does.
 */
bool suppressions_match(const struct suppressions *s, unsigned kind,
			const struct suppression_frame *frame, size_t count, uint32_t *index_out);

/* Writes the entry that would match: lines, through @line. */
void suppressions_print(unsigned kind, const struct suppression_frame *frame, size_t count,
			void (*line)(void *ctx, const char *text), void *ctx);

/*
 * What holds reachable blocks: chains of texts from a root to the site whose blocks hold others.
 *
 *	variable 'cache' (app) -> make_table (cache.c:20) -> make_entry (cache.c:31)
 *
 * Chains are a trie, so equal ones have equal numbers. A site that repeats, as in a list, is in a
 * chain once.
 */

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
	HASH(uint32_t) link_hash, held_hash, text_hash;
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
	uint64_t oldest, youngest;
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
	struct leak_sum outer;        /* likewise: other blocks lie in them, which are judged */
	HASH(uint32_t) by_path;       /* numbers of sites, by path and kind */
	VEC(uint32_t) suppression;    /* by node and kind, encoded; 0 = not known yet */
	/* by node: leak_site.path, frames; 0 = not known yet */
	VEC(struct leak_path { uint64_t hash; uint32_t length; }) path;
	VEC(uint64_t) function;       /* by frame: a hash of its function; 0 = not known yet */
	uint64_t now;                 /* profile_block_clock at the time of the report */
	uint64_t minimum_age;         /* us; younger blocks are left out */
	/* set after leaks_init: */
	bool is_checked;              /* a leak check set the kinds */
	uint32_t shown_kinds;         /* in texts; a bit for each enum leak_kind */
	bool has_entries;             /* print suppressions that would match */
	struct lost_events lost;      /* missing from the profile */
	char *lost_text;              /* says what is missing; owned; NULL = nothing */
	const struct suppressions *suppressions; /* not owned; NULL = none */
	struct leak_holders *holders; /* of sites; not owned; NULL = unknown */
};

/* @report must outlive @l; its profile must not change meanwhile. */
void leaks_init(struct leaks *l, const struct report *report, uint64_t now, uint64_t minimum_age);
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
/* The same for a block that a leak check does not judge, since other blocks lie in it. */
void leaks_add_outer(struct leaks *l, const struct block *block);
/* All live blocks of the profile, unchecked. */
void leaks_add_all(struct leaks *l);

/* Sorts the sites for reports; call it before writing. */
void leaks_sort(struct leaks *l);

/* What the texts and the JSON of leaks share. */

extern const char *const leak_kind_text[LEAK_KIND_COUNT];

/* Frames of the call tree, innermost first. */
struct leak_frames {
	VEC(struct leak_frame {
		uint32_t frame;
		bool is_repeated; /* recursion behind it was left out */
	}) list;
};

struct leak_stack {
	VEC(struct suppression_frame) list;
	VEC(char *) names; /* of them; owned */
};

void leak_stack_deinit(struct leak_stack *s);

typedef void leaks_frame_fn(void *ctx, taddr_t pc, const struct symbol *symbol,
			    const struct symbol_frame *frame);

/* Calls @fn for each frame of the path that ends at @node, innermost first. */
void leaks_each_frame(const struct leaks *l, uint32_t node, leaks_frame_fn *fn, void *ctx);

/*
 * Adds the names on the path that ends at @node, with inlined functions; @is_merged: without
 * recursion. Only caches in @l.
 */
void leaks_list_stack(struct leaks *l, uint32_t node, bool is_merged, struct leak_stack *out);

/* Leaks as text, for people. */

/*
 * Calls @line for each line of the report (without newline), for at most @max_sites sites. With
 * samples, sites below resolution (profile/estimate.h) share one line.
 */
typedef void leaks_line_fn(void *ctx, const char *line);
void leaks_print(const struct leaks *l, size_t max_sites, leaks_line_fn *line, void *ctx);
/* The same as findings. */
void leaks_brief(const struct leaks *l, struct brief *b);
/* Only the lines with totals. */
void leaks_print_sums(const struct leaks *l, leaks_line_fn *line, void *ctx);

/* Leaks as JSON. */

/*
 * JSON, one object:
 *
 *	{"pid": N, "command": TEXT, "age": SECONDS, "bytes": N, "blocks": N,
 *	 "younger": {"bytes": N, "blocks": N},                  what "age" leaves out
 *	 "suppressed": [{"name": TEXT, "bytes": N, "blocks": N}, ...],    only with suppressions
 *	 "outer": {"bytes": N, "blocks": N},                    if others lie in some
 *	 "missing": {"allocations": N, "bytes": N, "releases": N},        if events were lost
 *	 "kinds": {KIND: {"bytes": N, "blocks": N}, ...},       only after a leak check
 *	 "sites": [{"kind": KIND or absent, "bytes": N, "blocks": N,
 *	            "indirect": {"bytes": N, "blocks": N},      if there are any
 *	            "oldest": SECONDS, "youngest": SECONDS,
 *	            "holders": [{"bytes": N, "blocks": N, "chain": [TEXT, ...]}, ...], if known
 *	            "stack": [{"address": "0x..", "function": TEXT,
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
