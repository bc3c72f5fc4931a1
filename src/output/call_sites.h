/*
 * Call sites with labels: the innermost function of a stack that does not allocate on behalf of its
 * caller (symbols/wrapper.h), inlined functions included.
 *
 *	leaves with bytes -> sites -> one label each, "fill (t.cpp:8)" -> the largest
 */
#ifndef PTMEM_OUTPUT_CALL_SITES_H
#define PTMEM_OUTPUT_CALL_SITES_H

#include "output/report_tree.h"
#include "symbols/wrapper.h"

struct call_site {
	uint32_t frame;   /* of the call tree; 0 = no known frame */
	uint32_t inlined; /* the function at that address: index into struct symbol.frame */
	enum frame_rank rank; /* RANK_SITE, or for a stack of wrappers only its best rank */
	bool is_unnamed;  /* the function has no name: frame is its nearest named caller */
	/* object where functions inlined into the site or a callee are unknown; NULL = none */
	const char *lacking;
};

/* The call site of the stack that @s was filled with (symbols/wrapper.h). */
struct call_site call_site_find(const struct shown_stack *s);

/*
 * "fill (t.cpp:8)", "f (in /usr/lib/libx.so)", "0x5569... (in PATH)", "[dynamic loader]", "[initial
 * image]" (what exec mapped) or "???"; control characters are replaced. The caller frees it.
 */
char *call_site_text(const struct report *r, struct call_site site);

struct call_site_sum {
	char *text; /* of call_site_text */
	uint64_t bytes;
	uint64_t variance; /* of the bytes (profile_error); 0 unless they are estimates */
	const char *lacking; /* as in struct call_site, of the first such stack */
	uint64_t lacking_bytes; /* of such stacks */
	const char *object; /* path, NULL = unknown; the report's */
	const char *file, *dir; /* as in struct symbol_frame */
	uint32_t line;      /* 0 = unknown */
};

/* All sites whose functions have no name. */
struct nameless_sites {
	uint64_t bytes;
	const char *object; /* of the largest; NULL = there is none; the report's */
};

/* The bytes of leaves 1 .. @count; [0] is not used. */
struct leaf_amounts {
	uint64_t *bytes;
	uint64_t *variance; /* NULL = unknown: profile_leaf_variance is an upper bound */
	uint32_t count;
};

/*
 * The @max sites with the most bytes of @held, the largest first; sites with equal labels are
 * merged. Returns their number; the caller frees each text. @nameless_out: of all of @held; may be
 * NULL.
 */
size_t call_sites_largest(const struct report *r, const struct leaf_amounts *held,
			  struct call_site_sum *out, size_t max,
			  struct nameless_sites *nameless_out);

#endif
