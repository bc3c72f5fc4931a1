/*
 * The summary on standard error at the end of a profile with its largest call sites, the figures
 * of --stats, and hints about setuid programs, Python, stripped objects, idle processes, and an
 * operator new that returns addresses inside blocks.
 */
#include "session/runtimes/v8_stacks.h"
#include "session/runtimes/virtual_stacks.h"
#include "session/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "profile/estimate.h"
#include "profile/history.h"
#include "session/heap_sample.h"
#include "session/labels.h"
#include "session/memory_source.h"
#include "session/out.h"
#include "session/record/recording_values.h"
#include "session/runtimes/runtime_system.h"
#include "session/session.h"
#include "session/session_output.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"

/*
 * The bytes of each leaf of @p at the exact peak, and their sum; @h: its history, or NULL if it
 * keeps the peak.
 */
static void find_exact(const struct profile *p, const struct history *h, struct leaf_amounts *held,
		       uint64_t *sum_out)
{
	uint32_t leaves = profile_leaf_count(p);

	*sum_out = profile_totals(p)->peak_bytes;
	held->bytes = xcalloc(leaves + 1ul, sizeof(*held->bytes));
	held->variance = xcalloc(leaves + 1ul, sizeof(*held->variance));
	held->count = leaves;
	for (uint32_t i = 1; i <= leaves; i++) {
		struct history_held at_peak =
			h ? profile_held_at_peak(p, h, i) : profile_at_peak(p, i);

		held->bytes[i] = at_peak.bytes;
		held->variance[i] = at_peak.variance;
	}
}

/* The same at the peak's snapshot. */
static void find_snapshot(const struct profile *p, struct leaf_amounts *held, uint64_t *sum_out)
{
	uint32_t i = profile_snapshot_count(p);

	while (i > 0 && profile_snapshot(p, i - 1)->kind != SNAPSHOT_PEAK)
		i--;
	if (i == 0)
		return;
	*sum_out = profile_snapshot(p, i - 1)->heap;
	held->count = profile_snapshot_leaves(p, i - 1, &held->bytes);
}

void peak_amounts(const struct profile *p, struct leaf_amounts *out, uint64_t *sum_out)
{
	const struct history *h = profile_whole_history(p);

	*out = (struct leaf_amounts){0};
	*sum_out = 0;
	if (profile_options(p)->keep_peak)
		find_exact(p, NULL, out, sum_out);
	else if (h && !h->base_ms) /* one that was restarted has the peak since then */
		find_exact(p, h, out, sum_out);
	else
		find_snapshot(p, out, sum_out);
}

void largest_find(const struct report *r, struct largest *out)
{
	struct leaf_amounts held;

	*out = (struct largest){0};
	peak_amounts(r->profile, &held, &out->bytes);
	if (held.count)
		out->count = call_sites_largest(r, &held, out->site, LARGEST_SITES,
						&out->nameless);
	for (size_t i = 0; i < out->count; i++)
		out->error[i] = profile_error(r->profile, out->site[i].variance);
	free(held.bytes);
	free(held.variance);
}

static void print_row(const struct largest *l, bool is_first, uint64_t bytes, const char *error,
		      const char *text)
{
	char size[AMOUNT_SIZE];

	log_info("  %-12s %10s%s %5.1f %%  %s", is_first ? "largest" : "",
		 amount_bytes((double)bytes, size), error,
		 amount_percent(bytes, l->bytes), text);
}

void largest_print(const struct largest *l)
{
	uint64_t unresolved = 0;
	bool is_first = true;

	for (size_t i = 0; i < l->count; i++) {
		_cleanup_free_ char *text = text_site_label(l->site[i].text);
		double bytes = (double)l->site[i].bytes;
		char error[AMOUNT_SIZE] = "";

		if (estimate_is_below_resolution(bytes, l->error[i])) {
			unresolved += l->site[i].bytes;
			continue;
		}
		if (l->error[i] > 0)
			amount_error(bytes, l->error[i], error);
		print_row(l, is_first, l->site[i].bytes, error, text);
		is_first = false;
	}
	if (unresolved)
		print_row(l, is_first, unresolved, "", "sites below resolution");
}

void largest_deinit(struct largest *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->site[i].text);
}

/*
 * Detects setuid programs, Python, stripped objects, idle processes, and an operator new that
 * returns addresses inside blocks.
 */

#define FEW_SAMPLES 100
#define FEW_CALLS 1000

/* ptrace(2), PTRACE_TRACEME: execve grants such privileges only if the tracer has them. */
void hints_at_start(const struct session *s)
{
	struct stat st;
	if (geteuid() == 0 || s->image.was_attached || !s->space)
		return;
	_cleanup_free_ char *exe = xasprintf("/proc/%d/exe", (int)s->space->processes.reader);
	_cleanup_free_ char *path = proc_read_link((pid_t)s->process.pid, "exe");
	if (stat(exe, &st) != 0 || !path)
		return;
	bool is_setuid = (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
			 (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid());
	bool has_capabilities = getxattr(exe, "security.capability", NULL, 0) > 0;
	if (is_setuid || has_capabilities)
		log_warn("%s has %s, which the kernel ignores under a tracer without root: "
			 "it may fail; run ptmem as root, or attach with -p as root",
			 path, is_setuid ? "a setuid or setgid bit" : "file capabilities");
}

/* -- at the end -- */

/* pymalloc serves requests of up to 512 bytes from arenas that it maps, bypassing malloc. */
static void hint_at_pymalloc(const struct session *s)
{
	if (!s->image.has_python)
		return;
	if (s->image.was_given_malloc)
		log_info("hint: Python was started with PYTHONMALLOC=malloc, so that small objects "
			 "are seen; --python-malloc=keep leaves its own allocator");
	else if (!s->image.has_python_malloc && s->image.has_pymalloc)
		log_info("hint: Python's own allocator serves %s: its functions are "
			 "watched, too%s; --python-malloc=keep leaves them out",
			 s->image.is_free_threaded ? "objects" : "small objects",
			 s->image.was_attached ? ", from the attach on" : "");
	else if (s->image.is_free_threaded)
		log_info("hint: free-threaded Python has no allocator but its own, which serves "
			 "its objects: they are not in this profile%s; with a build that is not "
			 "free-threaded they are",
			 s->run->options->children.python_malloc == PYTHON_MALLOC_AUTO ?
				 ", since its functions have no symbols, or copies elsewhere" : "");
	else if (s->image.ignores_variables)
		log_info("hint: Python's own allocator serves objects of up to 512 bytes, which "
			 "are not in this profile; -E and -I make Python ignore PYTHONMALLOC, and "
			 "no option does the same: only without them these objects are seen");
	else if (!s->image.has_python_malloc)
		log_info("hint: Python's own allocator serves small objects, which are not in this "
			 "profile%s; PYTHONMALLOC=malloc in the program's environment shows them",
			 s->run->options->children.python_malloc == PYTHON_MALLOC_AUTO ?
				 ": its functions have no symbols, or copies elsewhere" : "");
}

/* If call sites without a name hold more than 5 % of the peak. */
static void hint_at_symbols(const struct largest *l)
{
	if (l->nameless.object && l->nameless.bytes > l->bytes / 20)
		log_info("hint: %s is stripped; names need its debug package (-dbgsym, -debuginfo) "
			 "or a build with -g", text_base_name(l->nameless.object));
}

/* Of the largest call sites, if a program's or library's lost inlined functions concern as much. */
static void hint_at_split(const struct largest *l)
{
	for (size_t i = 0; i < l->count; i++) {
		const char *object = l->site[i].lacking;
		uint64_t bytes = 0;

		for (size_t k = 0; object && k < l->count; k++) {
			if (l->site[k].lacking != object)
				continue;
			if (k < i) /* seen */
				object = NULL;
			bytes += l->site[k].lacking_bytes;
		}
		if (object && bytes > l->bytes / 20)
			log_info("hint: %s: inlined functions have no names, for its .dwo files "
				 "are missing, and packages of them (.dwp) are not read; keep the "
				 ".dwo files, or build without split debug information",
				 text_base_name(object));
	}
}

/*
 * With samples: hardly any delete was seen; free was called more often than malloc and related
 * functions returned blocks, by at least half of the calls of operator new; and that many blocks
 * seem to be live, or were replaced by others at their addresses, so their releases were missed.
 */
static bool misses_deletes(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct call_total *f = s->heap.sample.totals.function;
	uint64_t made = f[FUNCTION_NEW].calls, freed = f[FUNCTION_FREE].calls;
	uint64_t plain = f[FUNCTION_MALLOC].calls + f[FUNCTION_CALLOC].calls +
			 f[FUNCTION_REALLOC].calls + f[FUNCTION_MEMALIGN].calls;
	uint64_t unseen = profile_count(s->heap.profile, p->live_blocks + p->replaced_blocks);

	return p->samples >= FEW_SAMPLES && made >= FEW_CALLS &&
	       f[FUNCTION_DELETE].calls < made / 100 && freed >= plain &&
	       freed - plain >= made / 2 && unseen >= made / 2;
}

static void hint_at_headers(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);

	/* without samples each such release is an unknown free */
	bool has_header_frees =
		p->header_frees >= FEW_CALLS && p->header_frees >= p->unknown_frees / 10 * 9;

	if (s->heap.sample.interval ? misses_deletes(s) : has_header_frees)
		log_info("hint: operator new seems to return addresses inside its blocks, and "
			 "operator delete to be inlined: such releases are not seen, and less is "
			 "in use than this says; see man ptmem, CAVEATS");
}

#define NONE_SAMPLED "no allocation was sampled"
#define NONE_ALLOCATED "nothing was allocated while ptmem was attached"

bool summary_is_hint_of_none(const char *line)
{
	return strstr(line, NONE_SAMPLED) || strstr(line, NONE_ALLOCATED);
}

/* Called at the end, after the summary. */
static void hint_at_guess(const struct session *s)
{
	if (s->end.guess)
		log_info("hint: malloc, free, calloc and realloc have no names here, and were "
			 "found by their code (%s's); --probe=malloc=0xADDRESS and others override "
			 "that", probe_guess_name(s->end.guess));
}

static void hints_at_end(const struct session *s, const struct largest *largest)
{
	const struct options *o = s->run->options;
	if (!s->run->target || !o->profile.heap || o->profile.pages_as_heap)
		return;
	bool is_empty = profile_totals(s->heap.profile)->allocations == 0;
	if (is_empty && o->tracing.heap_sample > 1)
		log_info("hint: " NONE_SAMPLED ": take a smaller --heap-sample, or a longer time");
	else if (s->image.was_attached && is_empty)
		log_info("hint: " NONE_ALLOCATED ": attach for longer, or while the program "
			 "works");
	else
		hint_at_pymalloc(s);
	hint_at_guess(s);
	runtime_system_hints(s);
	hint_at_headers(s);
	hint_at_symbols(largest);
	hint_at_split(largest);
}

/*
 * The summary on standard error at the end of a profile, and the figures of --stats.
 *
 *	ptmem: process 4242, ./prog
 *	ptmem:   killed by    SIGSEGV (core dumped)
 *	ptmem:   peak         286.1 KiB (292,968 bytes) in 120 blocks after 1.20 s
 *	ptmem:   written to   massif.out.4242; read it with: ptmem-report massif.out.4242
 *	ptmem:   largest      200.0 KiB  69.9 %  load_table (prog.c:12)
 *	...
 *
 * Lines about ptmem's overhead and incomplete stacks appear only if these matter, or with -v.
 */

#define PAUSE_MATTERS 20e6 /* ns */
#define STOP_NS 20000ull   /* minimum for a stop with both switches: 33 us were measured */

static bool is_verbose(void)
{
	return log_is_on(LOG_VERBOSE);
}

/* One incomplete stack in a thousand does not matter. */
static void print_stacks(const struct session *s)
{
	const struct stack_counts *c = &s->stacks.counts;
	uint64_t incomplete = c->taken - c->complete;
	if (c->taken == 0 || (incomplete * 1000 <= c->taken && !is_verbose()))
		return;
	char reasons[256] = "", n[AMOUNT_SIZE], m[AMOUNT_SIZE];
	size_t used = 0;
	for (int i = UNWIND_COMPLETE + 1; i < UNWIND_END_COUNT && used < sizeof(reasons); i++) {
		if (c->ends[i])
			used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s %s",
						 used ? ", " : " (",
						 amount_commas(c->ends[i], n),
						 unwind_end_text[i]);
	}
	log_info("  stacks       %s of %s complete%s%s", amount_commas(c->complete, n),
		 amount_commas(c->taken, m), reasons, used ? ")" : "");
}

/* --verify-stacks */
static void print_verified(const struct session *s)
{
	const struct stack_counts *c = &s->stacks.counts;
	char n[AMOUNT_SIZE], m[AMOUNT_SIZE], k[AMOUNT_SIZE];

	if (!s->run->options->tracing.verify_stacks)
		return;
	log_info("  verified     %s of %s stack%s differ%s (%s frame%s by libunwind)",
		 c->differing ? amount_commas(c->differing, n) : "none",
		 amount_commas(c->verified, m), plural(c->verified),
		 c->verified == 1 || c->differing == 1 ? "s" : "",
		 amount_commas(c->second_frames, k), plural(c->second_frames));
}

static void print_pauses(const struct session *s)
{
	const struct { uint64_t ns; const char *what;
	} pauses[] = {
		{s->end.pauses.attach_ns, "to attach"},
		{s->end.pauses.promote_ns, "to place jumps"},
		{target_stats(s->run->target)->detach_ns, "to detach"},
	};
	char text[128] = "";
	size_t used = 0;
	bool matters = is_verbose();
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		matters |= (double)pauses[i].ns > PAUSE_MATTERS;
		if (pauses[i].ns)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.1f ms %s",
						 used ? ", " : "", (double)pauses[i].ns / 1e6,
						 pauses[i].what);
	}
	if (used > 0 && matters)
		log_info("  paused       %s", text);
}

/*
 * Many breakpoint stops explain a slow program. Their cost cannot be measured: each stop also
 * includes the switches to ptmem and back, which take longer on a busy machine. So the number of
 * stops decides whether the line appears, unless there are few for a long run.
 */
static void print_stops(const struct session *s)
{
	char n[AMOUNT_SIZE], longest[64] = "";
	uint64_t elapsed = s->process.end_ns - s->process.start_ns;
	uint64_t lost_ns = MAX(s->end.pauses.trap_ns, s->end.pauses.trap_stops * STOP_NS);
	if (!is_verbose() && (lost_ns < elapsed / 50 || lost_ns < 500000000))
		return;
	if ((double)s->end.pauses.longest_trap_ns > PAUSE_MATTERS)
		snprintf(longest, sizeof(longest), " (%.1f ms at one)",
			 (double)s->end.pauses.longest_trap_ns / 1e6);
	log_info("  stopped      at %s breakpoint%s in %.2f s: %.2f s for ptmem's work%s, and the "
		 "switches to ptmem and back",
		 amount_commas(s->end.pauses.trap_stops, n), plural(s->end.pauses.trap_stops),
		 (double)elapsed / 1e9, (double)s->end.pauses.trap_ns / 1e9, longest);
}

struct summary_row {
	const char *key;
	uint64_t value;
};

static void print_rows(const struct summary_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		log_info("%s: %llu", rows[i].key, (unsigned long long)rows[i].value);
}

/* For all processes so far; functions, markers and verified stacks for this one only. */
static void print_target_stats(const struct session *s)
{
	const struct target_stats *t = target_stats(s->run->target);
	const struct summary_row rows[] = {
		{"stops", t->stops},
		{"breakpoint stops", t->trap_stops},
		{"nested calls", t->nested},
		{"threads", t->threads},
		{"processes", t->processes},
		{"watched functions", t->probes},
		{"functions not watched", t->unprobed},
		{"signal masks restored", t->masks_restored},
		{"attach microseconds", t->attach_ns / 1000},
		{"detach microseconds", t->detach_ns / 1000},
		{"promotion microseconds", t->promote_ns / 1000},
		{"functions with jumps", s->end.probes.jumps},
		{"functions with breakpoints", s->end.probes.breakpoints},
		{"markers with jumps", s->end.probes.marker_jumps},
		{"markers with breakpoints", s->end.probes.marker_breakpoints},
		{"records", t->records},
		{"records with raw stacks", t->raw_records},
		{"ring bytes", t->ring_bytes},
		{"stops at a full ring", t->ring_full},
		{"verified stacks", s->stacks.counts.verified},
		{"differing stacks", s->stacks.counts.differing},
		{"frames compared with libunwind", s->stacks.counts.second_frames},
		{"pages left mapped", t->pages_left},
	};
	print_rows(rows, ARRAY_SIZE(rows));
}

/* CPU time of ptmem itself so far, in milliseconds, without its children. */
static uint64_t own_cpu_ms(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

/* Warns about those of @s, at its end. */
static void warn_of_lost(const struct session *s)
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

static void print_stats(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct summary_row rows[] = {
		{"allocations", profile_count(s->heap.profile, p->allocations)},
		{"reallocations", p->reallocations},
		{"frees", profile_count(s->heap.profile, p->frees)},
		{"allocated bytes", p->allocated_bytes},
		{"failed", p->failed},
		{"samples", p->samples},
		{"peak bytes", p->peak_bytes},
		{"peak blocks", profile_count(s->heap.profile, p->peak_blocks)},
		{"peak stack bytes", p->peak_stacks},
		{"live bytes", p->live_bytes},
		{"live blocks", profile_count(s->heap.profile, p->live_blocks)},
		{"earlier bytes", p->earlier_bytes},
		{"earlier blocks", p->earlier_blocks},
		{"unknown frees", p->unknown_frees},
		{"replaced blocks", p->replaced},
		{"stacks", s->stacks.counts.taken},
		{"complete stacks", s->stacks.counts.complete},
		{"call tree nodes", calltree_node_count(profile_calltree(s->heap.profile))},
		{"call tree bytes", calltree_memory(profile_calltree(s->heap.profile))},
		{"block table bytes", blocks_memory(profile_blocks(s->heap.profile))},
		{"profile bytes", profile_memory(s->heap.profile)},
	};
	print_rows(rows, ARRAY_SIZE(rows));
	if (s->stacks.unwind) {
		const struct unwind_stats *u = unwind_stats(s->stacks.unwind);
		const struct summary_row unwind_rows[] = {
			{"unwind rules", u->rules},
			{"frames", u->frames},
			{"slow frames", u->slow_frames},
			{"frame pointer frames", u->fp_frames},
			{"guessed frames", u->guessed_frames},
		};
		print_rows(unwind_rows, ARRAY_SIZE(unwind_rows));
	}
	log_info("own cpu ms: %llu", (unsigned long long)own_cpu_ms());
	if (s->run->target)
		print_target_stats(s);
}

/* The maximum of many estimates tends to be too high. */
static void print_peak_estimate(const struct profile *profile)
{
	const struct profile_totals *p = profile_totals(profile);
	char size[AMOUNT_SIZE], error[AMOUNT_SIZE], blocks[AMOUNT_SIZE];
	uint64_t count = profile_count(profile, p->peak_blocks);

	log_info("  peak         %s%s in about %s block%s after %.2f s, the highest of all "
		 "estimates",
		 amount_bytes((double)p->peak_bytes, size),
		 amount_error((double)p->peak_bytes, profile_error(profile, p->peak_variance),
			      error),
		 amount_commas(count, blocks), plural(count), (double)p->peak_time_ns / 1e9);
}

static void print_peak(const struct profile_totals *p)
{
	char size[AMOUNT_SIZE], bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE];
	log_info("  peak         %s (%s byte%s) in %s block%s after %.2f s",
		 amount_bytes((double)p->peak_bytes, size), amount_commas(p->peak_bytes, bytes),
		 plural(p->peak_bytes), amount_commas(p->peak_blocks, blocks),
		 plural(p->peak_blocks), (double)p->peak_time_ns / 1e9);
}

/* Of a forked child: its own calls. */
static void print_calls(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile),
				    *in = &s->process.inherited.totals;
	uint64_t allocated = p->allocated_bytes - in->allocated_bytes, freed = p->frees - in->frees,
		 resized = p->reallocations - in->reallocations;
	char n[AMOUNT_SIZE], bytes[AMOUNT_SIZE], reallocs[AMOUNT_SIZE], frees[AMOUNT_SIZE],
		failed[AMOUNT_SIZE];

	log_info("  allocations  %s of %s byte%s, %s realloc%s, %s free%s, %s failed",
		 amount_commas(p->allocations - in->allocations, n),
		 amount_commas(allocated, bytes), plural(allocated),
		 amount_commas(resized, reallocs), plural(resized), amount_commas(freed, frees),
		 plural(freed), amount_commas(p->failed - in->failed, failed));
	if (p->earlier_blocks)
		log_info("  before       %s byte%s in %s block%s were in use at the attach",
			 amount_commas(p->earlier_bytes, bytes), plural(p->earlier_bytes),
			 amount_commas(p->earlier_blocks, n), plural(p->earlier_blocks));
	log_info("  at the end   %s byte%s in %s block%s in use",
		 amount_commas(p->live_bytes, bytes), plural(p->live_bytes),
		 amount_commas(p->live_blocks, n), plural(p->live_blocks));
}

/* The first line is not an estimate: all calls are counted, sampled or not. */
static void print_sampled_calls(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct call_totals *calls = &s->heap.sample.totals, *in = &s->process.inherited.calls;
	const struct call_sums all = call_totals_sums(calls), before = call_totals_sums(in);
	const struct call_sums sums = {.allocations = all.allocations - before.allocations,
				       .bytes = all.bytes - before.bytes,
				       .frees = all.frees - before.frees};
	uint64_t samples = p->samples - s->process.inherited.totals.samples,
		 resized = calls->function[FUNCTION_REALLOC].calls -
			   in->function[FUNCTION_REALLOC].calls;
	uint64_t blocks = profile_count(s->heap.profile, p->live_blocks);
	char n[AMOUNT_SIZE], m[AMOUNT_SIZE], k[AMOUNT_SIZE], error[AMOUNT_SIZE];

	/* reallocs of an allocator of the program's own are counted as allocations */
	log_info("  allocations  %s of %s byte%s, %s by %srealloc, and %s %s: %s",
		 amount_commas(sums.allocations, n), amount_commas(sums.bytes, m),
		 plural(sums.bytes), amount_commas(resized, k),
		 s->image.has_own_realloc ? "the C library's " : "",
		 amount_commas(sums.frees, error), call_totals_frees(sums.frees),
		 call_totals_trust(calls->is_doubtful));
	log_info("  at the end   %s%s in about %s block%s in use",
		 amount_bytes((double)p->live_bytes, n),
		 amount_error((double)p->live_bytes,
			      profile_error(s->heap.profile, p->live_variance), error),
		 amount_commas(blocks, m), plural(blocks));
	_cleanup_free_ char *range = session_sampling_range(s);

	log_info("  sampled      %s allocation%s, one every %s on average: sizes and numbers of "
		 "blocks are estimates", amount_commas(samples, n), plural(samples), range);
}

/* Typical of wrapper scripts: the user means the program that they execute. */
static void print_successor(const struct session *s)
{
	_cleanup_free_ char *now = proc_read_link((pid_t)s->process.pid, "exe");
	const char *path = s->image.successor ? s->image.successor : now;

	path = path ? path : "another program";
	if (s->image.successor_problem)
		log_info("  then         it executed %s, which was not profiled: %s", path,
			 s->image.successor_problem);
	else if (s->image.successor)
		log_info("  then         it executed %s, but the profile ended before that started",
			 path);
	else
		log_info("  then         it executed %s, %s", path,
			 s->run->options->children.follow_exec ? "which cannot be profiled" :
								 "not followed: --follow-exec=no");
}

/* What the process ran before, as shims and wrapper scripts do. */
static void print_predecessors(const struct session *s)
{
	const struct process_files *p = run_process(s->run, s->process.pid);
	char n[AMOUNT_SIZE];

	if (p->before)
		log_info("  before       %s (at most %s%s in use)", p->before,
			 s->heap.sample.interval ? "about " : "",
			 amount_bytes((double)p->before_peak, n));
}

/* As a shell would. */
static void print_signal(const struct session *s)
{
	int status = s->process.exit_status;
	char name[SIGNAL_NAME_SIZE];

	if (status >= 0 && WIFSIGNALED(status))
		log_info("  killed by    %s%s", signal_name(WTERMSIG(status), name),
			 WCOREDUMP(status) ? " (core dumped)" : "");
}

void summary_print_peak(const struct session *s)
{
	if (s->heap.sample.interval)
		print_peak_estimate(s->heap.profile);
	else
		print_peak(profile_totals(s->heap.profile));
}

void summary_print_labels(const struct session *s)
{
	struct leaf_amounts at_peak;
	uint64_t peak = 0;

	if (!s->labels)
		return;
	peak_amounts(s->heap.profile, &at_peak, &peak);
	labels_print(s, &at_peak, peak);
	free(at_peak.bytes);
	free(at_peak.variance);
}

static void print_profile(struct session *s, const char *path, struct largest *largest)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct options *o = s->run->options;
	bool is_sampled = s->heap.sample.interval;
	char n[AMOUNT_SIZE];

	if (log_is_on(LOG_INFO) && o->profile.heap) {
		const struct report r = session_report(s);

		largest_find(&r, largest);
	}
	_cleanup_free_ char *title = session_title(s);
	log_info("process %u, %s", s->process.pid, title);
	print_signal(s);
	if (o->profile.heap)
		summary_print_peak(s);
	summary_print_file(path);
	largest_print(largest);
	summary_print_labels(s);
	if (o->profile.heap && is_sampled)
		print_sampled_calls(s);
	else if (o->profile.heap)
		print_calls(s);
	if (o->profile.stacks)
		log_info("  stack use    at most %s byte%s", amount_commas(p->peak_stacks, n),
			 plural(p->peak_stacks));
	if (p->marked)
		log_info("  estimates    %s block%s of otel_memory:alloc stand for others: their "
			 "bytes and numbers are estimates", amount_commas(p->marked, n),
			 plural(p->marked));
	print_stacks(s);
	virtual_stacks_print(s);
	v8_stacks_print(s);
	print_verified(s);
	if (s->end.time_error_ns)
		log_info("  times        " TIMES_TEXT, (double)s->end.time_error_ns / 1e6);
	if (s->run->target) {
		print_pauses(s);
		print_stops(s);
	}
	warn_of_lost(s);
	print_predecessors(s);
	if (s->image.was_replaced)
		print_successor(s);
	hints_at_end(s, largest);
}

/* Whether another process has another file of that name. */
static bool is_own_name(const char *path)
{
	return strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0 ||
	       strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/", 6) == 0;
}

void summary_print_file(const char *path)
{
	if (!path || file_name_is_shared(path))
		return;
	if (is_own_name(path))
		log_info("  written to   %s", path);
	else
		log_info("  written to   %s; read it with: ptmem-report %s", path, path);
}

void summary_print(struct session *s, const char *path, struct largest *largest_out)
{
	if (!options_sample_only(s->run->options)) /* samples have no totals */
		print_profile(s, path, largest_out);
	else
		summary_print_file(path);
	if (s->run->options->messages.stats)
		print_stats(s);
}
