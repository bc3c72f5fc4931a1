/*
 * Writes memusage's data file; see memusage_output.h.
 *
 *	offset   0  heap 0, stack: peak of live + depth, time: start
 *	        24  heap: peak, stack: peak, time: end
 *	        48  heap, stack, time                      one per change, in order
 *
 * The buffer contains only records of the third kind. Calls recorded by pads arrive in batches with
 * a common time, that of their reading. They happened since the previous batch, within the reader's
 * maximum sleep, and get times spread evenly over that period.
 */
#include "output/memusage_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/files.h"

#define BATCH_NS 10000000u /* maximum time until calls are read */

struct data_record {
	uint64_t heap, stack, time;
};
_Static_assert(sizeof(struct data_record) == 24, "doc/memusage.md 2.1");

struct memusage_data {
	int fd;
	/* path of a file that was created and has no data yet; or NULL */
	char *new_path;
	int error;                  /* first -errno */
	struct data_record *buffer;
	uint32_t count, capacity;
	uint32_t batch; /* index of the first record with the time of the last one */
	uint64_t before;            /* the time before that */
	uint64_t wall_ns;           /* from the profile's clock to the time since 1970 */
};

static void write_all(struct memusage_data *d, const void *bytes, size_t size)
{
	const char *p = bytes;
	while (size > 0 && !d->error) {
		ssize_t n = write(d->fd, p, size);
		if (n < 0 && errno != EINTR)
			d->error = -errno;
		if (n <= 0)
			continue;
		p += n;
		size -= (size_t)n;
	}
}

static void seek(struct memusage_data *d, off_t offset, int whence)
{
	if (!d->error && lseek(d->fd, offset, whence) < 0)
		d->error = -errno;
}

/* Spreads the times of the last batch, which is complete. */
static void end_batch(struct memusage_data *d)
{
	uint32_t n = d->count - d->batch;
	if (n == 0)
		return;
	uint64_t end = d->buffer[d->count - 1].time,
		 start = MAX(d->before, end - MIN(end, BATCH_NS));
	for (uint32_t i = 0; i < n && start < end; i++)
		d->buffer[d->batch + i].time = start + (end - start) * (i + 1) / n;
	d->before = end;
	d->batch = d->count;
}

static void flush(struct memusage_data *d)
{
	end_batch(d);
	d->batch = 0;
	write_all(d, d->buffer, d->count * sizeof(*d->buffer));
	d->count = 0;
}

/*
 * Readers use ratios of times only. Nanoseconds since 1970 are a unit that ptmem-report recognizes:
 * a time stamp counter has such values after a decade.
 */
static uint64_t wall_offset(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - clock_now_ns();
}

int memusage_data_open(const char *path, uint32_t buffer, bool is_live,
		       struct memusage_data **data_out)
{
	int fd = stream_open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
	bool is_new = fd >= 0;
	if (!is_new)
		fd = stream_open(path, O_RDWR | O_CREAT, 0666);
	if (fd < 0)
		return fd;
	struct memusage_data *d = xcalloc(1, sizeof(*d));
	d->fd = fd;
	d->wall_ns = is_live ? wall_offset() : 0;
	d->new_path = is_new ? xstrdup(path) : NULL;
	d->capacity = MAX(MIN(buffer, (uint32_t)MEMUSAGE_DATA_MAX_BUFFER), 1u);
	d->buffer = xmalloc(d->capacity * sizeof(*d->buffer));
	seek(d, 0, SEEK_SET); /* a pipe cannot seek */
	if (d->error) {
		int err = d->error;
		memusage_data_close(d);
		return err;
	}
	*data_out = d;
	return 0;
}

void memusage_data_start(struct memusage_data *d, uint64_t start_ns)
{
	struct stat st;
	start_ns += d->wall_ns;
	const struct data_record first[2] = {{.time = start_ns}, {.time = start_ns}};
	free(d->new_path);
	d->new_path = NULL;
	d->count = d->batch = 0;
	d->before = start_ns;
	if (!d->error && fstat(d->fd, &st) == 0 && S_ISREG(st.st_mode) && ftruncate(d->fd, 0) != 0)
		d->error = -errno;
	seek(d, 0, SEEK_SET);
	write_all(d, first, sizeof(first));
}

void memusage_data_add(void *ctx, uint64_t heap, uint64_t stack, uint64_t time_ns)
{
	struct memusage_data *d = ctx;

	time_ns += d->wall_ns;
	if (d->count > d->batch && d->buffer[d->batch].time != time_ns)
		end_batch(d);
	d->buffer[d->count++] = (struct data_record){heap, stack, time_ns};
	if (d->count == d->capacity)
		flush(d);
}

/* The last record may have been written in part. */
static void cut_record(struct memusage_data *d)
{
	const off_t size = sizeof(struct data_record);
	struct stat st;

	if (fstat(d->fd, &st) == 0 && st.st_size % size && st.st_size > 2 * size &&
	    ftruncate(d->fd, st.st_size - st.st_size % size) != 0)
		d->error = -errno;
}

void memusage_data_finish(struct memusage_data *d, const struct memusage_data_peaks *peaks)
{
	/* readers divide by the duration */
	uint64_t end_ns = MAX(peaks->end_ns, peaks->start_ns + 1);
	const struct data_record first[2] = {
		{.stack = peaks->sum, .time = peaks->start_ns + d->wall_ns},
		{.heap = peaks->heap, .stack = peaks->stack, .time = end_ns + d->wall_ns},
	};
	flush(d);
	int err = d->error;

	d->error = 0; /* a disk that is full has room for what is there already */
	cut_record(d);
	seek(d, 0, SEEK_SET);
	write_all(d, first, sizeof(first));
	seek(d, 0, SEEK_END);
	d->error = err ? err : d->error;
}

int memusage_data_close(struct memusage_data *d)
{
	flush(d);
	if (close(d->fd) != 0 && !d->error)
		d->error = -errno;
	int err = d->error;
	if (d->new_path)
		unlink(d->new_path);
	free(d->new_path);
	free(d->buffer);
	free(d);
	return err;
}

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
