/* See option_check_record.h. */
#include "cli/option_check_record.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

static const char *find_contradiction(const struct options *o)
{
	bool has_heap = o->profile.heap && !o->profile.pages_as_heap &&
			o->tracing.sources & 1u << SOURCE_HEAP;

	if (options_record(o) && !has_heap)
		return "--record, --html and --listen are about the heap: --pages-as-heap, "
		       "--heap=no and --trace without heap cannot be used with them";
	if (o->files.record_every > 0 && o->files.record && strcmp(o->files.record, "-") == 0)
		return "--record-every makes several files: --record=- has one place for them";
	if (o->files.free_stacks && !options_record(o))
		return "--free-stacks goes with --record, --html or --listen";
	if (o->files.free_stacks && options_sample_interval(o))
		return "--free-stacks needs all events: --heap-sample cannot be used with it";
	return NULL;
}

int option_check_record(const struct options *o)
{
	const char *why = find_contradiction(o);

	if (!why)
		return 0;
	log_error("%s", why);
	return -EINVAL;
}
