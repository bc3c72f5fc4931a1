/* See option_check_record.h. */
#include "cli/option_check_record.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "session/condition.h"
#include "session/file_name.h"

static const char *find_contradiction(const struct options *o)
{
	bool has_heap = o->profile.heap && !o->profile.pages_as_heap &&
			o->tracing.sources & 1u << SOURCE_HEAP;

	if (options_record(o) && !has_heap)
		return "--record, --html and --listen are about the heap: --pages-as-heap, "
		       "--heap=no and --trace without heap cannot be used with them";
	if (o->files.record_every > 0 && o->files.record && file_name_is_shared(o->files.record))
		return "--record-every makes several files: standard output, a device or a FIFO "
		       "has one place for them";
	if (o->files.free_stacks && !options_record(o))
		return "--free-stacks goes with --record, --html or --listen";
	if (o->files.free_stacks && options_sample_interval(o))
		return "--free-stacks needs all events: --heap-sample cannot be used with it";
	return NULL;
}

/* The condition that cannot be used, and why. */
static const char *find_bad_condition(const struct options *o, const char **text_out)
{
	struct condition c = {0};

	for (size_t i = 0; i < o->when.count; i++) {
		const char *why = condition_parse(*text_out = o->when.data[i], &c);

		if (why)
			return why;
		if (c.action == ACTION_RECORD && !o->files.record)
			return "it writes a recording, and needs --record=FILE for its name and "
			       "place";
	}
	return NULL;
}

static int check_conditions(const struct options *o)
{
	const char *text = NULL, *why = find_bad_condition(o, &text);

	if (why)
		log_error("--when=%s: %s", text, why);
	else if (o->when.count && o->files.replay)
		log_error("--replay has no running program: --when cannot be used with it");
	else if (o->when.count && !(o->profile.heap && o->tracing.sources & 1u << SOURCE_HEAP))
		log_error("--when needs the profile of the heap: --heap=no and --trace without "
			  "heap cannot be used with it");
	else
		return 0;
	return -EINVAL;
}

int option_check_record(const struct options *o)
{
	const char *why = find_contradiction(o);

	if (!why)
		return check_conditions(o);
	log_error("%s", why);
	return -EINVAL;
}
