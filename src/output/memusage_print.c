/*
 * memusage's report, laid out as doc/memusage.md section 1 says.
 *
 *	          (empty)
 *	Memory usage summary: heap total: T, heap peak: P, stack peak: S
 *	         total calls   total memory   failed calls
 *	 malloc|         30           1200              0
 *	 ...
 *	Histogram for block sizes:
 *	    0-15             20  66% ==================================================
 */
#include "output/memusage_print.h"

#include <errno.h>
#include <inttypes.h>

#define BAR 50 /* characters of the longest bar */

struct paint {
	const char *title, *head, *label, *bad, *bar; /* start of escape sequences */
	const char *plain, *plain_long, *plain_number; /* and end, as in memusage */
};

static const struct paint coloured = {
	"\033[01;32m", "\033[04;34m", "\033[00;34m", "\033[01;41m", "\033[41;37m",
	"\033[0m", "\033[0;0m", "\033[00;00m",
};
static const struct paint colourless = {"", "", "", "", "", "", "", ""};

static void print_label(FILE *f, const struct paint *p, const char *name)
{
	fprintf(f, "%s%7s|%s ", p->label, name, p->plain);
}

/* Calls and memory; a label in front may extend @wide columns into them. */
static void print_sums(FILE *f, const struct memusage_numbers *n, enum memusage_row row, int wide)
{
	fprintf(f, "%*" PRIu64 "   %12" PRIu64, 10 - wide, n->row[row].calls, n->row[row].memory);
}

static void print_failed(FILE *f, const struct paint *p, uint64_t failed)
{
	fprintf(f, "   %s%12" PRIu64 "%s", failed ? p->bad : "", failed, p->plain_number);
}

static void print_row(FILE *f, const struct paint *p, const struct memusage_numbers *n,
		      enum memusage_row row, const char *name)
{
	print_label(f, p, name);
	print_sums(f, n, row, 0);
	print_failed(f, p, n->row[row].failed);
}

static void print_heap_rows(FILE *f, const struct paint *p, const struct memusage_numbers *n)
{
	print_row(f, p, n, MEMUSAGE_MALLOC, "malloc");
	fputc('\n', f);
	print_row(f, p, n, MEMUSAGE_REALLOC, "realloc");
	if (n->is_estimate)
		fputc('\n', f);
	else
		fprintf(f, "  (nomove:%" PRIu64 ", dec:%" PRIu64 ", free:%" PRIu64 ")\n",
			n->same_place, n->shrunk, n->freeing);
	print_row(f, p, n, MEMUSAGE_CALLOC, "calloc");
	fputc('\n', f);
	print_label(f, p, "free");
	print_sums(f, n, MEMUSAGE_FREE, 0);
	fputc('\n', f);
	if (n->row[MEMUSAGE_MEMALIGN].calls == 0)
		return;
	print_label(f, p, "memalign");
	print_sums(f, n, MEMUSAGE_MEMALIGN, 1);
	print_failed(f, p, n->row[MEMUSAGE_MEMALIGN].failed);
	if (n->is_estimate) { /* the row of free has the exact number of frees */
		fputc('\n', f);
		return;
	}
	fprintf(f, "  (realloc:%" PRIu64 ", free:%" PRIu64 ")\n", n->aligned_reallocs,
		n->aligned_frees);
}

static void print_mapping_rows(FILE *f, const struct paint *p, const struct memusage_numbers *n)
{
	print_row(f, p, n, MEMUSAGE_MMAP_READ, "mmap(r)");
	fputc('\n', f);
	print_row(f, p, n, MEMUSAGE_MMAP_WRITE, "mmap(w)");
	fputc('\n', f);
	print_row(f, p, n, MEMUSAGE_MMAP_ANONYMOUS, "mmap(a)");
	fputc('\n', f);
	print_row(f, p, n, MEMUSAGE_MREMAP, "mremap");
	fprintf(f, "  (nomove: %" PRIu64 ", dec:%" PRIu64 ")\n", n->map_same_place, n->map_shrunk);
	print_row(f, p, n, MEMUSAGE_MUNMAP, "munmap");
	fputc('\n', f);
}

/* floor(a * b / c), also if the product exceeds 64 bits. */
static unsigned share(uint64_t a, unsigned b, uint64_t c)
{
	return (unsigned)((unsigned __int128)a * b / c);
}

/* Count, percentage and bar of a line of the histogram, after its sizes. */
static void print_share(FILE *f, const struct paint *p, const struct memusage_numbers *n,
			uint64_t count, uint64_t largest)
{
	unsigned percent = share(count, 100, n->histogram_calls), bar = share(count, BAR, largest);
	fprintf(f, "%12" PRIu64 " ", count);
	if (percent == 0)
		fputs(" <1% ", f);
	else
		fprintf(f, "%3u%% ", percent);
	fputs(p->bar, f);
	while (bar-- > 0)
		fputc('=', f);
	fprintf(f, "%s\n", p->plain_long);
}

static void print_histogram(FILE *f, const struct paint *p, const struct memusage_numbers *n)
{
	uint64_t largest = n->large;
	for (unsigned i = 0; i < MEMUSAGE_BUCKETS; i++)
		largest = MAX(largest, n->histogram[i]);
	fprintf(f, "%sHistogram for block sizes:%s\n", p->title, p->plain_long);
	for (unsigned i = 0; i < MEMUSAGE_BUCKETS; i++) {
		if (!n->histogram[i])
			continue;
		fprintf(f, "%5u-%-5u", i * MEMUSAGE_BUCKET, (i + 1) * MEMUSAGE_BUCKET - 1);
		print_share(f, p, n, n->histogram[i], largest);
	}
	if (n->large) {
		fputs("   large   ", f);
		print_share(f, p, n, n->large, largest);
	}
}

int memusage_print(FILE *file, const struct memusage_numbers *n, bool with_mappings, bool use_color)
{
	const struct paint *p = use_color ? &coloured : &colourless;
	errno = 0;
	fprintf(file,
		"\n%sMemory usage summary:%s heap total: %" PRIu64 ", heap peak: %" PRIu64
		", stack peak: %" PRIu64 "\n",
		p->title, p->plain_long, n->total, n->peak, n->stack_peak);
	fprintf(file, "%s         total calls   total memory   failed calls%s\n", p->head,
		p->plain);
	print_heap_rows(file, p, n);
	if (with_mappings)
		print_mapping_rows(file, p, n);
	print_histogram(file, p, n);
	if (fflush(file) != 0 || ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}
