/* --inspect as text, with what would return free memory to the system. */
#include "output/inspect_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

static uint64_t total(struct inspect_bytes b)
{
	return b.resident + b.swapped;
}

/* Resident bytes in free chunks, of all arenas. */
static struct inspect_bytes inspect_free_bytes(const struct inspect_report *r)
{
	struct inspect_bytes all = {0};

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		inspect_bytes_add(&all, r->heaps.arenas.data[i].free);
	for (size_t i = ROW_TCACHE; r->other.name && i <= ROW_FREE_PAGES; i++)
		inspect_bytes_add(&all, r->row[i]);
	return all;
}

/* The bytes that malloc_trim(0) would return, of all arenas. */
static struct inspect_bytes inspect_trim_bytes(const struct inspect_report *r)
{
	struct inspect_bytes all = {0};

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		inspect_bytes_add(&all, r->heaps.arenas.data[i].trim);
	return all;
}

static void add(struct inspect_advice_list *out, const char *name, uint64_t bytes, char *text)
{
	if (bytes < PAGE_SIZE_MIN) {
		free(text);
		return;
	}
	*vec_add(&out->list) = (struct inspect_advice){.name = name, .bytes = bytes, .text = text};
}

static void advise_trim(const struct inspect_report *r, struct inspect_advice_list *out)
{
	add(out, "malloc_trim", total(inspect_trim_bytes(r)),
	    xstrdup("malloc_trim(0), called by the program now and then"));
}

/* Free memory in arenas other than the main one could serve all threads. */
static void advise_arenas(const struct inspect_report *r, struct inspect_advice_list *out)
{
	uint64_t bytes = 0;
	size_t others = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		const struct heap_arena *a = &r->heaps.arenas.data[i];

		if (a->is_main)
			continue;
		bytes += total(a->free);
		others++;
	}
	if (others == 0)
		return;
	add(out, "arena_max", bytes,
	    xasprintf("MALLOC_ARENA_MAX=1 in the environment at its start: what %zu other arena%s "
		      "free would serve all threads", others, others == 1 ? " has" : "s have"));
	if (out->list.count && bytes >= PAGE_SIZE_MIN)
		out->list.data[out->list.count - 1].is_limit = true;
}

/* Large chunks that would have been mapped separately with the initial threshold. */
static void advise_mmap(const struct inspect_report *r, struct inspect_advice_list *out)
{
	char now[AMOUNT_SIZE];
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++)
		bytes += total(r->heaps.arenas.data[i].large_free);
	if (!r->params.is_known || r->params.mmap_threshold <= HEAP_LARGE)
		return;
	size_t before = out->list.count;

	add(out, "mmap_threshold", bytes,
	    xasprintf("MALLOC_MMAP_THRESHOLD_=131072: blocks of that size get mappings of their "
		      "own, which free returns (the threshold has risen to %s)",
		      amount_bytes((double)r->params.mmap_threshold, now)));
	if (out->list.count > before)
		out->list.data[before].is_limit = true;
}

static void advise_top(const struct inspect_report *r, struct inspect_advice_list *out)
{
	char now[AMOUNT_SIZE];

	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		const struct heap_arena *a = &r->heaps.arenas.data[i];
		uint64_t top = total(a->top), kept = HEAP_LARGE + r->params.top_pad;

		if (!a->is_main || !r->params.is_known || top <= kept ||
		    r->params.trim_threshold <= HEAP_LARGE)
			continue;
		add(out, "trim_threshold", top - kept,
		    xasprintf("MALLOC_TRIM_THRESHOLD_=131072: free returns what is at the end of "
			      "the main arena (the threshold is %s)",
			      amount_bytes((double)r->params.trim_threshold, now)));
	}
}

static int compare(const void *a, const void *b)
{
	const struct inspect_advice *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

void inspect_advice_find(const struct inspect_report *r, struct inspect_advice_list *out)
{
	*out = (struct inspect_advice_list){0};
	if (!inspect_is_consistent(r))
		return; /* malloc might abort */
	advise_trim(r, out);
	advise_arenas(r, out);
	advise_mmap(r, out);
	advise_top(r, out);
	vec_sort(&out->list, compare);
}

void inspect_advice_deinit(struct inspect_advice_list *a)
{
	vec_release(&a->list, e, free(e->text));
}

/*
 * --inspect as text, most important first: one sentence; the rows, which add up; arenas; what pins
 * pages; what would help.
 */

#define ARENAS_SHOWN 8u
#define ARENA_NAME 32u
#define PINS_SHOWN 5u
#define TYPES_SHOWN 12u
#define SHARED_SHOWN 5u
#define NAME_SHOWN 200u

/* -- the sentence -- */

/* Both names may hold anything. */
static void print_name(FILE *f, const struct inspect_title *t)
{
	_cleanup_free_ char *path = t->core ? log_visible(t->core->path) : NULL;
	_cleanup_free_ char *command = log_visible(t->command);

	if (path)
		fprintf(f, "%s, core of ", path);
	fprintf(f, "process %u, %s\n", t->pid, command ? command : "");
}

static void print_summary(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	char all[AMOUNT_SIZE], live[AMOUNT_SIZE], unused[AMOUNT_SIZE], trim[AMOUNT_SIZE];
	uint64_t used = r->row[ROW_LIVE].resident + r->row[ROW_MMAPPED].resident;
	uint64_t empty = inspect_free_bytes(r).resident;

	print_name(f, t);
	fprintf(f, "%s %s", amount_bytes((double)r->all.resident, all),
		t->core ? "in the core, pages of zeros not counted" : "resident");
	if (r->other.name) {
		fprintf(f, ": %s (%.1f %%) in live blocks of malloc, %s (%.1f %%) free in malloc\n",
			amount_bytes((double)used, live), amount_percent(used, r->all.resident),
			amount_bytes((double)empty, unused),
			amount_percent(empty, r->all.resident));
		return;
	}
	if (!t->has_malloc) {
		fputs("; its malloc has not been used, or is not glibc's\n", f);
		return;
	}
	fprintf(f, ": %s (%.1f %%) in live blocks of malloc, %s (%.1f %%) free in malloc",
		amount_bytes((double)used, live), amount_percent(used, r->all.resident),
		amount_bytes((double)empty, unused), amount_percent(empty, r->all.resident));
	if (inspect_is_consistent(r))
		fprintf(f, ", of which malloc_trim(0) would return %s",
			amount_bytes((double)inspect_trim_bytes(r).resident, trim));
	fputc('\n', f);
}

/* -- rows -- */

static void print_row(FILE *f, const struct inspect_report *r, struct inspect_bytes b,
		      const char *text)
{
	char resident[AMOUNT_SIZE], swapped[AMOUNT_SIZE];

	fprintf(f, "%18s %5.1f %%", amount_commas(b.resident, resident),
		amount_percent(b.resident, r->all.resident));
	if (r->all.swapped)
		fprintf(f, " %18s", amount_commas(b.swapped, swapped));
	fprintf(f, "  %s\n", text);
}

static void print_core_rows(FILE *f, const struct inspect_core_title *c,
			    const struct inspect_report *r)
{
	char bytes[AMOUNT_SIZE];

	print_row(f, r, r->all, "sum of the rows");
	fprintf(f, "%18s          pages of zeros: touched or not, the core does not say\n",
		amount_commas(c->zeros, bytes));
	fprintf(f, "%18s          all: memory in the core\n", amount_commas(c->bytes, bytes));
	fprintf(f, "(not in the core: %s bytes of mappings, mostly code and files that were not "
		   "changed; and which pages were resident or swapped out)\n",
		amount_commas(c->left_out, bytes));
	if (c->missing_files)
		fprintf(f, "(%u of the files of the program and libraries %s changed: "
			   "--verbose names them)\n", c->missing_files,
			c->missing_files == 1 ? "is missing or has" : "are missing or have");
}

/* A part of VmRSS. */
static void print_huge(FILE *f, const struct inspect_title *t)
{
	char bytes[AMOUNT_SIZE], read[AMOUNT_SIZE];

	if (!t->huge)
		return;
	fprintf(f, "%18s          of all: in transparent huge pages\n",
		amount_commas(t->huge, bytes));
	if (t->huge_read == t->huge)
		fprintf(f, "%18s          of these: small pages that hold only zeros\n",
			amount_commas(t->huge_zeros, bytes));
	else
		fprintf(f, "%18s          of %s of these: small pages that hold only zeros; the "
			   "rest was not read\n", amount_commas(t->huge_zeros, bytes),
			amount_commas(t->huge_read, read));
}

static void print_process_rows(FILE *f, const struct inspect_title *t,
			       const struct inspect_report *r)
{
	char bytes[AMOUNT_SIZE];

	print_row(f, r, r->all, "all: VmRSS");
	if (t->rss != r->all.resident)
		fprintf(f, "(/proc/%u/status says %llu kB: the kernel's counters lag behind, these "
			   "are its page tables)\n", t->pid, (unsigned long long)(t->rss / 1024));
	print_huge(f, t);
	if (t->hugetlb)
		fprintf(f, "%18s          huge pages of hugetlbfs, which VmRSS does not have\n",
			amount_commas(t->hugetlb, bytes));
	if (r->differing)
		fprintf(f, "(%lld bytes changed from outside while they were counted)\n",
			(long long)r->differing);
}

static void print_part(FILE *f, struct inspect_bytes b, const char *name)
{
	char bytes[AMOUNT_SIZE];

	fprintf(f, "%18s          of shared memory: %s\n", amount_commas(total(b), bytes), name);
}

/* The parts of the row of shared memory, if they have names; they are no rows of their own. */
static void print_shared(FILE *f, const struct inspect_report *r)
{
	struct inspect_bytes rest = r->row[ROW_SHARED];
	size_t shown = MIN(r->shared.count, SHARED_SHOWN);

	for (size_t i = 0; i < shown && (r->shared.count > 1 || *r->shared.data[i].name); i++) {
		const struct inspect_shared *s = &r->shared.data[i];
		_cleanup_free_ char *name = log_visible(*s->name ? s->name : "without a name");
		_cleanup_free_ char *cut = text_cut(name ? name : "", NAME_SHOWN);

		print_part(f, s->bytes, cut);
		rest.resident -= s->bytes.resident;
		rest.swapped -= s->bytes.swapped;
	}
	if (r->shared.count > shown)
		print_part(f, rest, "others");
}

/* What is charged to the control group, of which VmRSS is a part. */
static void print_cgroup(FILE *f, const struct memory_cgroup_usage *u)
{
	char bytes[AMOUNT_SIZE];

	fprintf(f, "\n%18s %7s  of its control group\n", "bytes", "");
	for (size_t i = 0; i < u->count; i++)
		if (u->part[i].bytes)
			fprintf(f, "%18s %5.1f %%  %s\n", amount_commas(u->part[i].bytes, bytes),
				amount_percent(u->part[i].bytes, u->all), u->part[i].text);
	fprintf(f, "%18s %5.1f %%  all that is charged to it\n", amount_commas(u->all, bytes),
		amount_percent(u->all, u->all));
	if (u->excess)
		fprintf(f, "(%s bytes more than that are in its statistics, which are older)\n",
			amount_commas(u->excess, bytes));
}

static void print_rows(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	fprintf(f, "\n%18s %7s%s  what\n", t->core ? "bytes in the core" : "resident bytes", "",
		r->all.swapped ? "      swapped bytes" : "");
	for (size_t i = 0; i < ROW_COUNT; i++)
		if (r->row[i].resident || r->row[i].swapped)
			print_row(f, r, r->row[i], inspect_row_text[i]);
	print_shared(f, r);
	if (t->core)
		print_core_rows(f, t->core, r);
	else
		print_process_rows(f, t, r);
	if (t->cgroup)
		print_cgroup(f, t->cgroup);
}

/* -- arenas -- */

static const struct heap_arena **sort_arenas(const struct inspect_report *r)
{
	size_t count = r->heaps.arenas.count;
	const struct heap_arena **list = xcalloc(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		size_t k = i;

		const struct heap_arena *a = &r->heaps.arenas.data[i];

		for (; k > 0 && list[k - 1]->system_bytes < a->system_bytes; k--)
			list[k] = list[k - 1];
		list[k] = a;
	}
	return list;
}

static uint64_t count_pinned(const struct pinned_pages *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < PINNED_STEPS; i++)
		sum += p->step[i];
	return sum;
}

static const char *arena_name(const struct heap_arena *a, char name[static ARENA_NAME])
{
	if (a->is_main)
		return "main";
	snprintf(name, ARENA_NAME, "%#llx", (unsigned long long)a->addr);
	return name;
}

static void print_arena(FILE *f, const struct heap_arena *a)
{
	char system[AMOUNT_SIZE], live[AMOUNT_SIZE], unused[AMOUNT_SIZE], trim[AMOUNT_SIZE];
	char resident[AMOUNT_SIZE], name[ARENA_NAME], blocks[AMOUNT_SIZE];

	fprintf(f, "%14s %10s %10s %10s %12s %10s %10s %10llu %10llu\n",
		arena_name(a, name),
		amount_bytes((double)a->system_bytes, system),
		amount_bytes((double)a->counted.resident, resident),
		amount_bytes((double)a->live_bytes, live), amount_commas(a->live_blocks, blocks),
		amount_bytes((double)a->free.resident, unused),
		amount_bytes((double)a->trim.resident, trim),
		(unsigned long long)a->pages.free, (unsigned long long)count_pinned(&a->pages));
	if (a->missing_bytes)
		fprintf(f, "%14s (%llu of its bytes were not found)\n", "",
			(unsigned long long)a->missing_bytes);
	if (a->pages.unknown)
		fprintf(f, "%14s (%llu of its pages could not be followed)\n", "",
			(unsigned long long)a->pages.unknown);
}

static void print_arenas(FILE *f, const struct inspect_title *t,
			 const struct inspect_report *r)
{
	const struct heap_arena **list = sort_arenas(r);
	size_t count = r->heaps.arenas.count;

	fprintf(f, "\n%14s %10s %10s %10s %12s %10s %10s %10s %10s\n", "arena", "system",
		t->core ? "in core" : "resident", "live", "blocks", "free", "trimmable",
		"free pages", "pinned");
	for (size_t i = 0; i < MIN(count, ARENAS_SHOWN); i++)
		print_arena(f, list[i]);
	if (count > ARENAS_SHOWN)
		fprintf(f, "%14s %zu smaller arenas\n", "and", count - ARENAS_SHOWN);
	free(list);
}

/* -- pinned pages -- */

static void print_histogram(FILE *f, const struct inspect_report *r)
{
	char bytes[AMOUNT_SIZE];
	uint64_t step[PINNED_STEPS] = {0}, unused = 0, pages = 0;

	for (size_t i = 0; i < r->heaps.arenas.count; i++) {
		const struct pinned_pages *p = &r->heaps.arenas.data[i].pages;

		unused += p->free_bytes;
		for (size_t k = 0; k < PINNED_STEPS; k++) {
			step[k] += p->step[k];
			pages += p->step[k];
		}
	}
	if (pages == 0)
		return;
	fprintf(f, "\n%s free on %llu page%s that live blocks pin; live bytes per page:\n",
		amount_bytes((double)unused, bytes), (unsigned long long)pages, plural(pages));
	for (size_t k = 0; k < PINNED_STEPS; k++)
		fprintf(f, "%10u%s %10llu page%-1s %5.1f %%\n", pinned_step[k],
			k + 1 < PINNED_STEPS ? " or less" : "        ",
			(unsigned long long)step[k], plural(step[k]),
			amount_percent(step[k], pages));
}

/* The same for each arena, where there are several: pages. */
static void print_histograms(FILE *f, const struct inspect_report *r)
{
	const struct heap_arena **list = sort_arenas(r);
	size_t count = r->heaps.arenas.count > 1 ? r->heaps.arenas.count : 0;
	char name[ARENA_NAME];

	if (count > 0) {
		fprintf(f, "\nthe same by arena, pages with at most:\n%14s", "");
		for (size_t k = 0; k < PINNED_STEPS; k++)
			fprintf(f, " %10u", pinned_step[k]);
		fputc('\n', f);
	}
	for (size_t i = 0; i < MIN(count, ARENAS_SHOWN); i++) {
		fprintf(f, "%14s", arena_name(list[i], name));
		for (size_t k = 0; k < PINNED_STEPS; k++)
			fprintf(f, " %10llu", (unsigned long long)list[i]->pages.step[k]);
		fputc('\n', f);
	}
	free(list);
}

static void print_paths(FILE *f, const struct inspect_title *t)
{
	for (size_t i = 0; i < t->pin_count; i++) {
		const struct inspect_pin *p = &t->pin[i];
		_cleanup_free_ char *first = text_site_label(p->depth ? p->frame[0] : "???");

		if (i == 0)
			fputs("\nthe same by call path:\n", f);
		fprintf(f, "%10llu page%-1s by blocks of %s\n",
			(unsigned long long)p->pages, plural(p->pages), first);
		for (size_t k = 1; k < p->depth; k++) {
			_cleanup_free_ char *caller = text_site_label(p->frame[k]);

			fprintf(f, "%30s%s\n", "", caller);
		}
		inspect_print_alone(f, p->pages_alone);
	}
}

/* -- parameters and advice -- */

static void print_params(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	const struct glibc_params *p = &r->params;
	char mmap[AMOUNT_SIZE], trim[AMOUNT_SIZE], arenas[32] = "by the number of CPUs";

	fputs("\nmalloc: glibc", f);
	if (t->glibc_major)
		fprintf(f, " %u.%u%s", t->glibc_major, t->glibc_minor,
			t->is_newer ? " (verified, not known)" : "");
	if (p->is_known) {
		if (p->arena_max)
			snprintf(arenas, sizeof(arenas), "%llu",
				 (unsigned long long)p->arena_max);
		fprintf(f, "; mmap_threshold %s, trim_threshold %s (%s); arenas at most: %s; "
			   "blocks in threads' caches: %llu of a size",
			amount_bytes((double)p->mmap_threshold, mmap),
			amount_bytes((double)p->trim_threshold, trim),
			p->is_fixed ? "fixed" : "dynamic", arenas,
			(unsigned long long)p->tcache_count);
	} else {
		fputs("; its thresholds and limits are not known", f);
	}
	fputc('\n', f);
}

static void print_other(FILE *f, const struct inspect_allocator *a)
{
	char blocks[AMOUNT_SIZE], bytes[AMOUNT_SIZE], cached[AMOUNT_SIZE], slabs[AMOUNT_SIZE];

	fprintf(f, "\nmalloc: %s; %s block%s of %s in use, %s in threads' caches; they are in %s "
		   "%s\n",
		a->name, amount_commas(a->sums.live_blocks, blocks), plural(a->sums.live_blocks),
		amount_bytes((double)a->sums.live_bytes, bytes),
		amount_commas(a->sums.cached_blocks, cached), amount_commas(a->sums.slabs, slabs),
		a->sums.slabs == 1 ? "group of blocks" : "groups of blocks");
}

static void print_advice(FILE *f, const struct inspect_report *r)
{
	struct inspect_advice_list advice;
	char bytes[AMOUNT_SIZE];

	inspect_advice_find(r, &advice);
	if (advice.list.count > 0)
		fputs("\nwhat would return memory:\n", f);
	for (size_t i = 0; i < advice.list.count; i++) {
		const struct inspect_advice *a = &advice.list.data[i];

		fprintf(f, "%s%10s  %s\n", a->is_limit ? "up to " : "      ",
			amount_bytes((double)a->bytes, bytes), a->text);
	}
	inspect_advice_deinit(&advice);
}

void inspect_report_print_doubts(FILE *f, const struct inspect_title *t,
				 const struct inspect_report *r)
{
	inspect_python_print_doubts(f, &r->python);
	if (!t->has_malloc && !r->other.name)
		return;
	if (t->inside)
		fprintf(f, "%u thread%s in the middle of malloc: a block of each may be counted as "
			   "live or free\n", t->inside, t->inside == 1 ? " is" : "s are");
	if (r->other.broken)
		fprintf(f, "%u part%s of the heap contradict%s the rest: it is corrupt, or was "
			   "being changed\n",
			r->other.broken, plural(r->other.broken), r->other.broken == 1 ? "s" : "");
	if (r->other.sums.loose_blocks)
		fprintf(f, "%llu block%s may begin later than shown: of aligned blocks %s keeps no "
			   "record where they begin\n",
			(unsigned long long)r->other.sums.loose_blocks,
			plural(r->other.sums.loose_blocks), r->other.name);
	if (r->broken_lists || r->heaps.unlisted)
		fprintf(f, "%u list%s of free blocks could not be followed, %llu of their elements "
			   "are no blocks: the heap is corrupt, or was being changed\n",
			r->broken_lists, plural(r->broken_lists),
			(unsigned long long)r->heaps.unlisted);
	if (r->heaps.broken_heaps)
		fprintf(f, "%u of %u heaps could not be followed to their ends: corrupt\n",
			r->heaps.broken_heaps, r->heap_count);
	if (r->params.is_known && !r->is_mmapped_complete)
		fprintf(f, "%llu of %u blocks with mappings of their own were found\n",
			(unsigned long long)r->mmapped_blocks, r->params.mmaps);
}

void inspect_report_print(FILE *f, const struct inspect_title *t, const struct inspect_report *r)
{
	print_summary(f, t, r);
	inspect_python_print_summary(f, r);
	print_rows(f, t, r);
	inspect_python_print(f, r, PINS_SHOWN);
	if (t->go)
		inspect_go_print(f, t->go, TYPES_SHOWN);
	if (r->other.name) {
		inspect_types_print(f, &r->types, &r->holders, TYPES_SHOWN);
		print_other(f, &r->other);
		inspect_report_print_doubts(f, t, r);
	} else if (t->has_malloc) {
		print_arenas(f, t, r);
		print_histogram(f, r);
		print_histograms(f, r);
		inspect_types_print_pins(f, &r->types, PINS_SHOWN);
		print_paths(f, t);
		inspect_types_print(f, &r->types, &r->holders, TYPES_SHOWN);
		print_params(f, t, r);
		print_advice(f, r);
		inspect_report_print_doubts(f, t, r);
	}
	inspect_cold_print(f, t, &r->types, TYPES_SHOWN);
	if (t->core)
		return;
	fprintf(f, "\nstopped for %.1f ms", (double)t->stopped_ns / 1e6);
	if (t->moments)
		fprintf(f, ", in which threads left malloc in %u step%s", t->moments,
			t->moments == 1 ? "" : "s");
	fputc('\n', f);
}

/* -- the brief report -- */

static void brief_rows(struct brief *b, const struct inspect_report *r)
{
	for (size_t i = 0; i < ROW_COUNT; i++) {
		uint64_t bytes = total(r->row[i]);

		if (bytes > 0)
			brief_add(b, bytes,
				  xasprintf("%.1f %%  %s", amount_percent(bytes, total(r->all)),
					    inspect_row_text[i]),
				  NULL, NULL);
	}
}

static void brief_types(struct brief *b, const struct inspect_title *t,
			const struct block_types *types)
{
	for (size_t i = 0; i < types->list.count; i++) {
		const struct block_type *e = &types->list.data[i];
		char text[INSPECT_TYPE_SIZE], blocks[AMOUNT_SIZE];

		inspect_type_text(e, text);
		amount_commas(e->blocks, blocks);
		brief_add(b, e->bytes,
			  xasprintf("in %s live block%s of", blocks, plural(e->blocks)),
			  xstrdup(text), xstrdup("--inspect-pointers"));
		if (t->touched && e->untouched.cold > 0)
			brief_add(b, e->untouched.cold, xstrdup("not touched, in live blocks of"),
				  xstrdup(text), NULL);
	}
}

static void brief_paths(struct brief *b, const struct inspect_title *t)
{
	for (size_t i = 0; i < t->cold_count; i++)
		brief_add(b, t->cold[i].untouched.cold, xstrdup("not touched, allocated by"),
			  xstrdup(t->cold[i].depth ? t->cold[i].frame[0] : "???"), NULL);
}

void inspect_report_brief(struct brief *b, const struct inspect_title *t,
			  const struct inspect_report *r)
{
	struct inspect_advice_list advice;
	char all[AMOUNT_SIZE], swapped[AMOUNT_SIZE];

	brief_set_title(b, xasprintf("%s%sprocess %u, %s", t->core ? t->core->path : "",
				     t->core ? ", core of " : "", t->pid, t->command));
	brief_add_fact(b, xasprintf("%s %s, %s swapped out",
				    amount_bytes((double)r->all.resident, all),
				    t->core ? "in the core" : "resident",
				    amount_bytes((double)r->all.swapped, swapped)));
	if (t->touched)
		brief_add_fact(b, xasprintf("not touched in %.3g s: on pages that nothing has read "
					    "or written, at least", t->touched_seconds));
	brief_rows(b, r);
	if (t->huge_zeros)
		brief_add(b, t->huge_zeros, xstrdup("of zeros in transparent huge pages, which "
						    "would not be resident in small ones"),
			  NULL, NULL);
	if (t->has_malloc || r->other.name)
		brief_types(b, t, &r->types);
	brief_paths(b, t);
	if (r->other.name || !t->has_malloc)
		return;
	inspect_advice_find(r, &advice);
	for (size_t i = 0; i < advice.list.count; i++)
		brief_add(b, advice.list.data[i].bytes,
			  xasprintf("%swould be returned by", advice.list.data[i].is_limit ?
				    "at most " : ""), xstrdup(advice.list.data[i].text), NULL);
	inspect_advice_deinit(&advice);
}
