/* All options of the tracee are computed here. */
#include "session/tracee_options.h"

#include <stdlib.h>

#include "session/run.h"
#include "tracee/state/target_options.h"

static bool traces(const struct options *o, enum source_kind kind)
{
	return o->tracing.sources & 1u << kind;
}

/* Whether calls of allocation functions are watched at all. */
static bool watches_calls(const struct options *o)
{
	bool has_use = o->profile.heap || o->files.events || o->messages.trace_malloc ||
		       o->files.xtree_mode != XTREE_NONE;

	if (o->profile.pages_as_heap)
		return false;
	/* calls show stack pointers, even if no allocation is counted */
	return options_profile_stacks(o) || options_count_calls(o) ||
	       (traces(o, SOURCE_HEAP) && has_use);
}

/*
 * The interval at which threads without calls are stopped to read their stack pointers; 0 =
 * never.
 */
static uint64_t sample_ns(const struct options *o)
{
	bool is_counting = options_count_calls(o) && !o->memusage.no_timer;

	return is_counting || options_profile_stacks(o) ? o->profile.stack_sample_ms * 1000000ull :
							  0;
}

/* With a seed the samples must not depend on when a function gets its jump. */
static bool promotes_at_once(const struct options *o)
{
	return o->tracing.probes == PROBES_JUMP ||
	       (o->tracing.probes == PROBES_AUTO && o->tracing.seed);
}

#define SPARSE_SAMPLES (256u << 10) /* bytes: fills a ring slowly while ptmem is stopped */

/* Sampled profiles are for programs that must not wait; dense samples are for tests. */
static uint64_t max_wait_ns(const struct options *o)
{
	if (o->tracing.max_wait >= 0)
		return (uint64_t)(o->tracing.max_wait * 1e9);
	return options_sample_interval(o) >= SPARSE_SAMPLES ? 0 : 1000000000;
}

void tracee_options_init(struct target_options *out, const struct run *run)
{
	const struct options *o = run->options;
	bool is_counting = options_count_calls(o), is_full = o->files.xtree_mode == XTREE_FULL;

	*out = (struct target_options){
		.running_on_valgrind = o->tracing.running_on_valgrind,
		.follow = {
			.exec = o->children.trace,
			.own_exec = options_sample_only(o) || o->children.follow_exec,
			.awaits_more = o->attach.follow.count > 0,
		},
		.start = {
			.file_signal = &run->file_signal,
			.pipe_signal = &run->pipe_signal,
		},
		.probes = {
			.none = !watches_calls(o),
			/* pads record no stacks of frees */
			.no_promotion = o->tracing.probes == PROBES_BREAK || is_full,
			.promote_at_once = promotes_at_once(o) && !is_full,
			.ring_size = o->tracing.ring,
			.max_wait_ns = max_wait_ns(o),
			.somalloc = o->tracing.soname_synonyms,
			.verify = getenv("PTMEM_VERIFY") != NULL,
		},
		.watch = {
			.mapping_calls = is_counting && o->memusage.mmap,
			.program_end = is_counting,
			.brk = o->profile.pages_as_heap || traces(o, SOURCE_BRK),
			.faults = traces(o, SOURCE_FAULTS),
			.mappings = o->profile.pages_as_heap || traces(o, SOURCE_MMAP),
			.mempools = o->tracing.mempools,
			.final_scan = o->leaks.check || o->inspect.at_exit,
		},
		.events = {
			.no_stacks = !o->profile.heap && o->files.xtree_mode == XTREE_NONE,
			.stack_pointers = is_counting || options_profile_stacks(o),
			.quick_threads = options_record(o),
			.count_instructions = o->profile.time_unit == TIME_INSTRUCTIONS,
			.free_stacks = is_full || o->files.free_stacks,
		},
		.samples = {
			.heap = options_sample_interval(o),
			.seed = run->sample_seed,
			.ns = sample_ns(o),
		},
	};
}
