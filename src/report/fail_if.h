/*
 * --fail-if=METRIC>+AMOUNT of --diff: how much more NEW may have than OLD, as a gate for changes.
 *
 *	peak>+5%            bytes live at the peak; of massif files, of its snapshot
 *	live-at-end>+1M     bytes live at the end
 *	allocated>+0        bytes ever allocated; recordings only
 *	allocations>+100    number of allocations, with reallocs; recordings only
 *
 * K, M, G and T multiply bytes by powers of 1,024, and numbers of allocations by powers of 1,000.
 */
#ifndef PTMEM_REPORT_FAIL_IF_H
#define PTMEM_REPORT_FAIL_IF_H

#include "report/diff_paths.h"
#include "report/show.h"

enum fail_if_metric {
	FAIL_IF_PEAK, FAIL_IF_LIVE, FAIL_IF_ALLOCATED, FAIL_IF_ALLOCATIONS, FAIL_IF_METRICS,
};

struct fail_if {
	enum fail_if_metric metric;
	double amount;    /* bytes, a number, or percent of OLD's value */
	bool is_percent;
};

/* NULL and *@out, or what is wrong with @text. */
const char *fail_if_parse(const char *text, struct fail_if *out);

/*
 * Says which conditions of @r hold for the two profiles of @pair, whose frames are matched, with
 * the call sites that grew most. 0, EXIT_GROWN if any does, or EXIT_REFUSED if one cannot be
 * checked.
 */
int fail_if_check(const struct report_request *r, const struct diff_pair *pair);

#endif
