/*
 * --when=CONDITION[:ACTION]. Conditions are about one process:
 *
 *	heap>2G           live bytes
 *	rss>8G  rss>80%   resident memory; percent of its cgroup's limit, else of physical memory
 *	growth>100M/min   live bytes, compared with those one minute (s, h) before
 *	pressure>10%      share of 10 seconds in which a task of its cgroup waited for memory
 *	limit>0/min       how often its cgroup reached its memory limit within one minute
 *
 * Pure functions.
 */
#ifndef PTMEM_SESSION_CONDITION_H
#define PTMEM_SESSION_CONDITION_H

#include "base/types.h"

enum condition_kind {
	CONDITION_HEAP, CONDITION_RSS, CONDITION_GROWTH, CONDITION_PRESSURE, CONDITION_LIMIT,
	CONDITION_KINDS,
};

enum condition_action {
	ACTION_RECORD, ACTION_INSPECT, ACTION_DETACH, ACTION_END, CONDITION_ACTIONS,
};

struct condition {
	enum condition_kind kind;
	enum condition_action action;
	double threshold;      /* the value must be larger: bytes, percent or a number */
	bool is_percent;
	uint64_t period_ns;    /* of growth and limit */
	size_t text_size;      /* of the condition, without its action */
};

/* NULL and *@out, or what is wrong with @text. */
const char *condition_parse(const char *text, struct condition *out);

/* Whether a condition holds for one process. All 0 at first. */
struct condition_state {
	bool holds;
	uint64_t rest_ns, ready_ns; /* it begins to hold at ready_ns at the earliest */
};

/*
 * Notes at @now_ns whether the value is above the threshold. Returns whether that changed
 * @s->holds. Between two beginnings there is at least a second, then twice as long each time, up to
 * an hour: a value that moves around the threshold must not fill a disk with recordings.
 */
bool condition_note(struct condition_state *s, bool is_above, uint64_t now_ns);

#endif
