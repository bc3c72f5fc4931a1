/*
 * --top: the call sites that hold memory now, and how that changes. The table is independent of a
 * terminal; it is drawn on one, or printed at each interval.
 */
#ifndef PTMEM_LIVE_TOP_H
#define PTMEM_LIVE_TOP_H

#include "base/alloc.h"
#include "output/call_sites.h"
#include "output/report.h"

/*
 * The call sites that hold memory now, and how that changes: the table of --top, independent of a
 * terminal.
 *
 *	leaves -> sites -> rows with live bytes, growth, rate
 *
 * A site is where the program calls an allocation function (the innermost shown frame), or where it
 * calls a wrapper of one (call_sites.h); its leaves are the call paths that lead there. Leaves are
 * never removed, so a leaf's site is looked up once.
 */

enum top_order { TOP_LIVE, TOP_GROWTH, TOP_SINCE_START, TOP_RATE, TOP_ORDER_COUNT };

struct top_site {
	struct call_site at;
	uint32_t leaf;         /* the leaf that holds most now */
	uint64_t live; /* now */
	uint64_t blocks; /* now; fractional (profile_count) until the update is complete */
	uint64_t variance; /* of live */
	double error;          /* standard error of live; 0 if it is exact */
	int64_t growth;        /* of live, since the last update */
	int64_t since_start;   /* of live, since the first update or top_table_restart */
	double rate;           /* bytes allocated per second since the last update */
	uint64_t leaf_live;    /* of leaf */
};

/* Data of a leaf between updates. */
struct top_leaf {
	uint32_t site; /* index into sites */
	uint64_t start_live, last_live, last_total;
};

struct top_table {
	VEC(struct top_site) sites; /* unordered */
	VEC(struct top_leaf) leaves;
	/* sorted sites after top_table_sort; without those below resolution (profile/estimate.h) */
	VEC(uint32_t) order;
	struct top_site unresolved; /* the sum of those below resolution; live 0: there are none */
	uint64_t time_ns;           /* time of the last update; 0 = none yet */
	bool is_above_wrappers;     /* sites are callers of wrappers; see top_table_group */
};

void top_table_deinit(struct top_table *t); /* all zeros = empty */

/*
 * Takes the current values of @r's profile at @time_ns. Frames left out by the filter are not
 * sites.
 */
void top_table_update(struct top_table *t, const struct report *r, uint64_t time_ns);

/*
 * Groups leaves by callers of wrappers, or by callers of allocation functions; call it before an
 * update.
 */
void top_table_group(struct top_table *t, const struct report *r, bool is_above_wrappers);

/* Restarts since_start. */
void top_table_restart(struct top_table *t);

/*
 * The labels of the @count rows from @first on, after top_table_sort, in @out; the caller frees
 * them. No two are equal.
 */
void top_table_labels(const struct top_table *t, const struct report *r, size_t first,
		      size_t count, char **out);

/* Largest first; of equal ones by live bytes, then the one that allocated first. */
void top_table_sort(struct top_table *t, enum top_order by);

/*
 * --top: the table of call sites, refreshed while the program runs. On a terminal and
 * with -p it is a screen with keys; else a table goes to stderr at each interval.
 */

struct run;
struct top;

/* Starts it if requested (else NULL): observes @run, wakes the loop, opens the screen. */
struct top *top_start(struct run *run);
/* Ends it. NULL is ignored. */
void top_stop(struct top *top);

#endif
