/* Properties that depend on several options. */
#include "session/options.h"

#include "output/brief.h"

void options_command(const struct options *o, struct brief_command *out)
{
	size_t words = 0;

	while (o->argv && o->argv[words] && (!o->command || &o->argv[words] < o->command))
		words++;
	*out = (struct brief_command){o->argv, words};
}

bool options_count_calls(const struct options *o)
{
	return o->memusage.count || o->memusage.data_file;
}

bool options_sample_only(const struct options *o)
{
	return o->samples.ms && !o->profile.heap && !options_count_calls(o) && !o->files.events &&
	       !o->inspect.at_exit && !o->children.trace && !o->profile.pages_as_heap &&
	       !(o->tracing.sources & ~(1u << SOURCE_HEAP));
}

uint64_t options_sample_interval(const struct options *o)
{
	return o->tracing.heap_sample > 1 ? o->tracing.heap_sample : 0;
}

bool options_report_leaks(const struct options *o)
{
	return o->leaks.age >= 0 || o->leaks.check;
}

bool options_report_on_signal(const struct options *o)
{
	return options_report_leaks(o) || o->inspect.at_exit;
}

bool options_record(const struct options *o)
{
	return o->files.record || o->files.html || o->listen.at;
}

bool options_write_massif(const struct options *o)
{
	return o->files.massif &&
	       (o->profile.pages_as_heap || o->profile.heap || o->profile.stacks ||
		!(options_count_calls(o) || o->samples.ms));
}

bool options_profile_stacks(const struct options *o)
{
	return o->profile.stacks &&
	       (o->profile.pages_as_heap || o->tracing.sources & 1u << SOURCE_HEAP);
}

uint32_t options_sources(const struct options *o)
{
	return o->tracing.sources | (o->profile.pages_as_heap ? 1u << SOURCE_HEAP : 0);
}

const char *options_core(const struct options *o)
{
	return o->inspect.what && *o->inspect.what ? o->inspect.what : NULL;
}

bool options_attach(const struct options *o)
{
	return o->attach.pid_count > 0 || o->attach.follow.count > 0;
}

bool options_attach_many(const struct options *o)
{
	return o->attach.pid_count > 1 || o->attach.follow.count > 0;
}
