/*
 * --fail-if=METRIC[@FUNCTION]>+AMOUNT of comparisons: how much more the new profile may have than
 * the old one, as a gate for changes.
 *
 *	peak>+5%            bytes live at the peak; of massif files, of its snapshot
 *	live-at-end>+1M     bytes live at the end
 *	allocated>+0        bytes ever allocated; recordings only, as all that follow
 *	allocations>+100    number of allocations, with reallocs
 *	leaked>+0           bytes lost, of recordings with --leak-check
 *	rss>+10%            peak of resident memory
 *	peak@parse>+5%      of the call paths with this function; likewise live-at-end, allocated
 *	                    and allocations; of two profiles, not of a baseline
 *
 * K, M, G and T multiply bytes by powers of 1,024, and numbers of allocations by powers of 1,000.
 */
#ifndef PTMEM_REPORT_GATES_FAIL_IF_H
#define PTMEM_REPORT_GATES_FAIL_IF_H

#include "output/gate.h"

struct fail_if {
	enum limit_metric metric;
	struct limit of;  /* its function alone, in the text; NULL = the whole program */
	double amount;    /* bytes, a number, or percent of the old value */
	bool is_percent;
};

/* NULL and *@out, or what is wrong with @text. */
const char *fail_if_parse(const char *text, struct fail_if *out);

/*
 * "it was A, and is B" if the condition is met, to be freed; NULL: it is not. Of bands the whole
 * new one must be above what the whole old one allows, by more than the wider one is wide: the
 * least new value is compared with the largest old one.
 */
char *fail_if_message(const struct fail_if *f, const struct gate_value *v);

#endif
