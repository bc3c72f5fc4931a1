/* See sampling_note.h. */
#include "recording/sampling_note.h"

#include "base/alloc.h"
#include "base/amount.h"

char *sampling_note(uint64_t interval)
{
	char distance[AMOUNT_SIZE];

	if (!interval)
		return xstrdup("");
	return xasprintf(" (estimate, sampled every %s)", amount_bytes((double)interval, distance));
}
