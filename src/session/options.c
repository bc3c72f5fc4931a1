/* Properties that depend on several options. */
#include "session/options.h"

bool options_count_calls(const struct options *o)
{
	return o->memusage || o->data_file;
}

bool options_sample_only(const struct options *o)
{
	return o->sample_ms && !o->heap && !options_count_calls(o) && !o->events_file &&
	       !o->inspect_at_exit && !o->trace_children && !o->pages_as_heap &&
	       !(o->trace & ~(1u << SOURCE_HEAP));
}

uint64_t options_sample_interval(const struct options *o)
{
	return o->heap_sample > 1 ? o->heap_sample : 0;
}

bool options_report_leaks(const struct options *o)
{
	return o->leaks >= 0 || o->leak_check;
}

bool options_report_on_signal(const struct options *o)
{
	return options_report_leaks(o) || o->inspect_at_exit;
}

bool options_record(const struct options *o)
{
	return o->record_file || o->html_file || o->listen;
}

bool options_write_massif(const struct options *o)
{
	return o->pages_as_heap || o->heap || o->stacks ||
	       !(options_count_calls(o) || o->sample_ms);
}

bool options_profile_stacks(const struct options *o)
{
	return o->stacks && (o->pages_as_heap || o->trace & 1u << SOURCE_HEAP);
}

uint32_t options_sources(const struct options *o)
{
	return o->trace | (o->pages_as_heap ? 1u << SOURCE_HEAP : 0);
}

const char *options_core(const struct options *o)
{
	return o->inspect && *o->inspect ? o->inspect : NULL;
}

bool options_name_pid(const struct options *o, uint32_t pid)
{
	for (uint32_t i = 0; i < o->pid_count; i++) {
		if ((uint32_t)o->pid[i] == pid)
			return true;
	}
	return false;
}
