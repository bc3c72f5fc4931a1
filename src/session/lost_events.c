/* See lost_events.h. */
#include "session/lost_events.h"

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "session/session.h"

char *lost_events_text(const struct lost_events *lost, uint64_t interval)
{
	char n[AMOUNT_SIZE], size[AMOUNT_SIZE], m[AMOUNT_SIZE];
	const char *what = interval ? "sample" : "allocation";

	if (!lost->allocations && !lost->releases && !lost->has_unsure)
		return NULL;
	amount_commas(lost->allocations, n);
	amount_commas(lost->releases, m);
	amount_bytes((double)lost->bytes, size);
	return xasprintf("%s %s%s of %s%s and %s%s release%s are missing", n, what,
			 plural(lost->allocations), interval ? "about " : "", size,
			 lost->has_unsure ? "at least " : "", m, plural(lost->releases));
}

void lost_events_warn(const struct session *s)
{
	const struct lost_events *lost = &s->heap.sample.totals.lost;
	_cleanup_free_ char *text = lost_events_text(lost, s->heap.sample.interval);

	if (!text)
		return;
	log_warn("process %u: %s: ptmem was stopped or late, and the program did not wait",
		 s->process.pid, text);
	log_info("  %s", lost->releases || lost->has_unsure ?
				  "blocks whose release is missing count as in use until "
				  "their address is used again" :
				  "live and peak may be too low by these");
}
