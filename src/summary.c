/*
 * What ptmem says on stderr at the end of a profile, and the figures of --stats.
 *
 *	ptmem: process 4242, ./prog
 *	ptmem:   allocations  12,345 of 1,234,567 bytes, 1 realloc, 12,340 frees, 0 failed
 *	ptmem:   peak         300,000 bytes in 120 blocks after 1.20 s
 *	...
 */
#include "summary.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "session.h"
#include "usage.h"

/* "1,234,567" of @n in one of a few static buffers, so that one line can have several. */
static const char *with_commas(uint64_t n)
{
	static char buffers[8][32];
	static unsigned next;
	char *out = buffers[next++ % 8], digits[24];
	int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n), k = 0;
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			out[k++] = ',';
		out[k++] = digits[i];
	}
	out[k] = '\0';
	return out;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void print_stacks(const struct session *s)
{
	if (s->stacks == 0)
		return;
	char reasons[256] = "";
	size_t used = 0;
	for (int i = UNWIND_COMPLETE + 1; i < UNWIND_END_COUNT && used < sizeof(reasons); i++) {
		if (s->ends[i])
			used += (size_t)snprintf(reasons + used, sizeof(reasons) - used, "%s%s %s",
						 used ? ", " : " (", with_commas(s->ends[i]),
						 unwind_end_text[i]);
	}
	log_info("  stacks       %s of %s complete%s%s", with_commas(s->complete_stacks),
		 with_commas(s->stacks), reasons, used ? ")" : "");
}

static void print_pauses(const struct session *s)
{
	if (!s->run->target)
		return;
	const struct { uint64_t ns; const char *what;
	} pauses[] = {
		{s->pauses.attach_ns, "to attach"},
		{s->pauses.promote_ns, "to place jumps"},
		{target_stats(s->run->target)->detach_ns, "to detach"},
	};
	char text[128] = "";
	size_t used = 0;
	for (size_t i = 0; i < ARRAY_SIZE(pauses); i++) {
		if (pauses[i].ns)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.1f ms %s",
						 used ? ", " : "", (double)pauses[i].ns / 1e6,
						 pauses[i].what);
	}
	if (used > 0)
		log_info("  paused       %s", text);
	log_info("  stopped      at %s breakpoint%s for %.2f s of %.2f s",
		 with_commas(s->pauses.trap_stops), plural(s->pauses.trap_stops),
		 (double)s->pauses.trap_ns / 1e9,
		 (double)(s->end_ns - s->start_ns) / 1e9);
}

struct row {
	const char *key;
	uint64_t value;
};

static void print_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		log_info("%s: %llu", rows[i].key, (unsigned long long)rows[i].value);
}

/* Of all processes so far, but for the functions and the verified stacks: these are of this one. */
static void print_target_stats(const struct session *s)
{
	const struct target_stats *t = target_stats(s->run->target);
	const struct row rows[] = {
		{"stops", t->stops},
		{"breakpoint stops", t->trap_stops},
		{"nested calls", t->nested},
		{"threads", t->threads},
		{"processes", t->processes},
		{"watched functions", t->probes},
		{"functions not watched", t->unprobed},
		{"signal masks mended", t->masks_mended},
		{"attach microseconds", t->attach_ns / 1000},
		{"detach microseconds", t->detach_ns / 1000},
		{"promotion microseconds", t->promote_ns / 1000},
		{"functions with jumps", s->jumps},
		{"functions with breakpoints", s->breakpoints},
		{"markers with jumps", s->marker_jumps},
		{"markers with breakpoints", s->marker_breakpoints},
		{"records", t->records},
		{"records with raw stacks", t->raw_records},
		{"ring bytes", t->ring_bytes},
		{"stops at a full ring", t->ring_full},
		{"unfinished records", t->holes},
		{"jumps around unfinished records", t->ring_jumps},
		{"verified stacks", s->verified},
		{"differing stacks", s->differing},
		{"pages left mapped", t->pages_left},
	};
	print_rows(rows, ARRAY_SIZE(rows));
}

/* CPU time of ptmem itself until now, in milliseconds; not of its children. */
static uint64_t own_cpu_ms(void)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void print_stats(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->profile);
	const struct row rows[] = {
		{"allocations", p->allocations},
		{"reallocations", p->reallocations},
		{"frees", p->frees},
		{"allocated bytes", p->allocated_bytes},
		{"failed", p->failed},
		{"peak bytes", p->peak_bytes},
		{"peak blocks", p->peak_blocks},
		{"peak stack bytes", p->peak_stacks},
		{"live bytes", p->live_bytes},
		{"live blocks", p->live_blocks},
		{"unknown frees", p->unknown_frees},
		{"replaced blocks", p->replaced},
		{"stacks", s->stacks},
		{"complete stacks", s->complete_stacks},
		{"call tree nodes", calltree_node_count(profile_calltree(s->profile))},
		{"call tree bytes", calltree_memory(profile_calltree(s->profile))},
		{"block table bytes", blocks_memory(profile_blocks(s->profile))},
		{"profile bytes", profile_memory(s->profile)},
	};
	print_rows(rows, ARRAY_SIZE(rows));
	if (s->unwind) {
		const struct unwind_stats *u = unwind_stats(s->unwind);
		const struct row unwind_rows[] = {
			{"unwind rules", u->rules},
			{"frames", u->frames},
			{"slow frames", u->slow_frames},
			{"frame pointer frames", u->fp_frames},
		};
		print_rows(unwind_rows, ARRAY_SIZE(unwind_rows));
	}
	log_info("own cpu ms: %llu", (unsigned long long)own_cpu_ms());
	if (s->run->target)
		print_target_stats(s);
}

static void print_heap(const struct profile_totals *p)
{
	log_info("  allocations  %s of %s bytes, %s realloc%s, %s free%s, %s failed",
		 with_commas(p->allocations), with_commas(p->allocated_bytes),
		 with_commas(p->reallocations), plural(p->reallocations), with_commas(p->frees),
		 plural(p->frees), with_commas(p->failed));
	log_info("  peak         %s bytes in %s block%s after %.2f s", with_commas(p->peak_bytes),
		 with_commas(p->peak_blocks), plural(p->peak_blocks),
		 (double)p->peak_time_ns / 1e9);
	log_info("  at the end   %s bytes in %s block%s in use", with_commas(p->live_bytes),
		 with_commas(p->live_blocks), plural(p->live_blocks));
}

/* Wrapper scripts end so: what was meant is the program behind them. */
static void print_successor(const struct session *s)
{
	_cleanup_free_ char *path = proc_read_link((pid_t)s->pid, "exe");
	log_info("  then         it executed %s, not followed; --trace-children=yes follows",
		 path ? path : "another program");
}

void summary_print(const struct session *s, const char *path)
{
	if (!usage_samples_alone(s->run->options)) { /* nothing to tell of those */
		log_info("process %u, %s", s->pid, s->command);
		if (s->run->options->heap)
			print_heap(profile_totals(s->profile));
		if (s->run->options->stacks)
			log_info("  stack use    at most %s bytes",
				 with_commas(profile_totals(s->profile)->peak_stacks));
		print_stacks(s);
		print_pauses(s);
		if (s->was_replaced)
			print_successor(s);
	}
	if (path && strcmp(path, "-") != 0)
		log_info("  written to   %s; read it with: ptmem-report %s", path, path);
	if (s->run->options->stats)
		print_stats(s);
}
