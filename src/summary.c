/*
 * What ptmem says on stderr at the end of a profile, and the figures of --stats.
 *
 *	ptmem: 4242 ./prog: 12,345 allocations of 1.2 MB; peak 300.0 KB after 1.20 s; ...
 */
#include <stdio.h>
#include <string.h>

#include "session.h"

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
						 used ? ", " : " (", with_commas(s->ends[i]), unwind_end_text[i]);
	}
	log_info("  stacks       %s of %s complete%s%s", with_commas(s->complete_stacks), with_commas(s->stacks),
		 reasons, used ? ")" : "");
}

static void print_pauses(const struct session *s)
{
	if (!s->run->target)
		return;
	const struct target_stats *st = target_stats(s->run->target);
	double whole = (double)(s->end_ns - s->start_ns) / 1e9;
	if (s->attach_ns)
		log_info("  paused       %.1f ms at attach; stopped at %s breakpoint%s for %.2f s of %.2f s",
			 (double)s->attach_ns / 1e6, with_commas(st->trap_stops), plural(st->trap_stops),
			 (double)st->stopped_ns / 1e9, whole);
	else
		log_info("  stopped      at %s breakpoint%s for %.2f s of %.2f s", with_commas(st->trap_stops),
			 plural(st->trap_stops), (double)st->stopped_ns / 1e9, whole);
}

static void print_stats(const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->profile);
	const struct { const char *key; uint64_t value; } rows[] = {
		{"allocations", p->allocations}, {"reallocations", p->reallocations}, {"frees", p->frees},
		{"allocated bytes", p->allocated_bytes}, {"failed", p->failed}, {"peak bytes", p->peak_bytes},
		{"peak blocks", p->peak_blocks}, {"live bytes", p->live_bytes}, {"live blocks", p->live_blocks},
		{"unknown frees", p->unknown_frees}, {"replaced blocks", p->replaced},
		{"stacks", s->stacks}, {"complete stacks", s->complete_stacks},
		{"call tree nodes", calltree_node_count(profile_calltree(s->profile))},
		{"call tree bytes", calltree_memory(profile_calltree(s->profile))},
		{"block table bytes", blocks_memory(profile_blocks(s->profile))},
		{"profile bytes", profile_memory(s->profile)},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		log_print(LOG_WARN + 1, "%s: %llu", rows[i].key, (unsigned long long)rows[i].value);
	if (s->unwind) {
		const struct unwind_stats *u = unwind_stats(s->unwind);
		log_info("unwind rules: %llu", (unsigned long long)u->rules);
		log_info("frames: %llu", (unsigned long long)u->frames);
		log_info("slow frames: %llu", (unsigned long long)u->slow_frames);
		log_info("frame pointer frames: %llu", (unsigned long long)u->fp_frames);
	}
	if (!s->run->target)
		return;
	const struct target_stats *t = target_stats(s->run->target);
	log_info("stops: %llu", (unsigned long long)t->stops);
	log_info("breakpoint stops: %llu", (unsigned long long)t->trap_stops);
	log_info("nested calls: %llu", (unsigned long long)t->nested);
	log_info("threads: %llu", (unsigned long long)t->threads);
	log_info("processes: %llu", (unsigned long long)t->processes);
	log_info("watched functions: %u", t->probes);
	log_info("functions not watched: %u", t->unprobed);
}

void session_print_summary(const struct session *s, const char *path)
{
	const struct profile_totals *p = profile_totals(s->profile);
	log_info("process %u, %s", s->pid, s->command);
	log_info("  allocations  %s of %s bytes, %s realloc%s, %s free%s, %s failed", with_commas(p->allocations),
		 with_commas(p->allocated_bytes), with_commas(p->reallocations), plural(p->reallocations),
		 with_commas(p->frees), plural(p->frees), with_commas(p->failed));
	log_info("  peak         %s bytes in %s block%s after %.2f s", with_commas(p->peak_bytes),
		 with_commas(p->peak_blocks), plural(p->peak_blocks), (double)p->peak_time_ns / 1e9);
	log_info("  at the end   %s bytes in %s block%s in use", with_commas(p->live_bytes),
		 with_commas(p->live_blocks), plural(p->live_blocks));
	print_stacks(s);
	print_pauses(s);
	if (path && strcmp(path, "-") != 0)
		log_info("  written to   %s; read it with: ptmem-report %s", path, path);
	if (s->run->options->stats)
		print_stats(s);
}
