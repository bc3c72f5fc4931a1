/* See sampling_note.h. */
#include "recording/sampling_note.h"

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"

char *sampling_range(uint64_t interval, uint64_t longest)
{
	char from[AMOUNT_SIZE], to[AMOUNT_SIZE];

	amount_bytes((double)interval, from);
	if (longest <= interval)
		return xstrdup(from);
	return xasprintf("%s to %s", from, amount_bytes((double)longest, to));
}

char *sampling_note(uint64_t interval, uint64_t longest)
{
	if (!interval)
		return xstrdup("");
	_cleanup_free_ char *range = sampling_range(interval, longest);

	return xasprintf(" (estimate, sampled every %s)", range);
}
