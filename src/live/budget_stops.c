/* See budget_stops.h. */
#include "live/budget_stops.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/trap_table.h"

#define NAMES_MAX 3u

static bool is_breakpoint(const struct trap *trap)
{
	return trap->kind == TRAP_ENTRY && !trap->is_removed && !trap->pad;
}

uint64_t budget_stops_count(const struct address_space *s)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < s->traps.count; i++)
		hits += is_breakpoint(&s->traps.data[i]) ? s->traps.data[i].hits : 0;
	return hits;
}

/* The breakpoint with most hits after @last, in their order; NULL = none is left. */
static const struct trap *next_most(const struct address_space *s, const struct trap *last)
{
	const struct trap *found = NULL;

	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		bool is_next = !last || trap->hits < last->hits ||
			       (trap->hits == last->hits && trap > last);

		if (is_next && is_breakpoint(trap) && trap->hits > (found ? found->hits : 0))
			found = trap;
	}
	return found;
}

char *budget_stops_explain(const struct address_space *s)
{
	const char *why = s->promotion.is_impossible ? s->promotion.why : NULL;
	_cleanup_free_ char *names = xstrdup("");
	const struct trap *trap = NULL;

	for (unsigned n = 0; n < NAMES_MAX && (trap = next_most(s, trap)); n++) {
		char *longer = xasprintf("%s%s%s", names, n ? ", " : "", trap->probe->symbol);

		free(names);
		names = longer;
		why = why ? why : trap->why_cold;
	}
	return xasprintf("%s (%s)", names, why ? why : "no jumps yet");
}
