/*
 * Writes memusage's data file; see memusage_data.h.
 *
 *	offset   0  heap 0, stack: peak of live + depth, time: start
 *	        24  heap: peak, stack: peak, time: end
 *	        48  heap, stack, time                      one per change, in order
 *
 * The buffer contains only records of the third kind. Calls recorded by pads arrive in batches with
 * a common time, that of their reading. They happened since the previous batch, within the reader's
 * maximum sleep, and get times spread evenly over that period.
 */
#include "output/memusage_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

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

int memusage_data_open(const char *path, uint32_t buffer, struct memusage_data **data_out)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC;
	int fd = open(path, flags | O_EXCL, 0666);
	bool is_new = fd >= 0;
	if (!is_new)
		fd = open(path, flags, 0666);
	if (fd < 0)
		return -errno;
	struct memusage_data *d = xcalloc(1, sizeof(*d));
	d->fd = fd;
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

void memusage_data_add(struct memusage_data *d, uint64_t heap, uint64_t stack, uint64_t time_ns)
{
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
		{.stack = peaks->sum, .time = peaks->start_ns},
		{.heap = peaks->heap, .stack = peaks->stack, .time = end_ns},
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
