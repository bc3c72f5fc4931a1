/*
 * Appends to the file of a recording. Keeps names, objects and nodes; everything else is passed
 * through.
 */
#include "recording/recording_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/stream.h"
#include "output/outfile.h"
#include "profile/history.h"
#include "recording/recording_write.h"
#include "tracee/os/limit.h"

struct recording_journal {
	char *path;
	int fd;                    /* -1 = there is no file yet */
	char *bytes;               /* to be appended; NULL = the file has everything */
	size_t size, done;         /* number of these; number of those in the file */
	struct recording *r;
	struct recording_builder b;
	size_t texts;              /* written so far */
	size_t written[RECORDING_TABLES]; /* the same for the tables that are kept */
	uint32_t current, shift;   /* first interval to write at the next call */
	uint32_t mark;             /* of the history, since when it collects what changes */
};

struct recording_journal *recording_journal_new(const char *path, uint64_t interval)
{
	struct recording_journal *j = xcalloc(1, sizeof(*j));

	j->path = xstrdup(path);
	j->fd = -1;
	j->r = recording_new();
	j->r->interval = interval;
	j->texts = 1;
	return j;
}

struct recording_journal *recording_journal_to_fd(int fd, uint64_t interval)
{
	struct recording_journal *j = recording_journal_new("", interval);

	j->fd = fd;
	return j;
}

int recording_journal_fd(const struct recording_journal *j)
{
	return j->fd;
}

uint64_t recording_journal_size(const struct recording_journal *j)
{
	struct stat own;

	return fstat(j->fd, &own) == 0 ? (uint64_t)own.st_size : 0;
}

uint64_t recording_journal_next_size(const struct recording_journal *j)
{
	return (j->fd < 0 ? 0 : recording_journal_size(j)) + j->size - j->done;
}

bool recording_journal_is_written(const struct recording_journal *j)
{
	return j->fd >= 0 && !j->bytes;
}

void recording_journal_close(struct recording_journal *j)
{
	if (!j)
		return;
	free(j->bytes);
	free(j->path);
	if (j->fd >= 0)
		close(j->fd);
	recording_builder_deinit(&j->b);
	recording_free(j->r);
	free(j);
}

struct recording *recording_journal_meta(struct recording_journal *j)
{
	return j->r;
}

static bool is_kept(enum recording_table_id id)
{
	return id == RECORDING_OBJECTS || id == RECORDING_FRAMES || id == RECORDING_NODES ||
	       id == RECORDING_PEAK_AT;
}

static void write_changes(struct recording_journal *j, struct recording_out *out)
{
	recording_write_texts(out, j->r, j->texts);
	j->texts = j->r->text.count;
	for (int i = 0; i < RECORDING_TABLES; i++) {
		enum recording_table_id id = (enum recording_table_id)i;

		recording_write_rows(out, j->r, id, j->written[id]);
		if (is_kept(id))
			j->written[id] = recording_rows(j->r, id);
		else
			recording_clear(j->r, id);
	}
	recording_write_sync(out);
}

void recording_journal_append(struct recording_journal *j, const struct recording_input *in)
{
	struct history *h = in->history;
	struct recording_out out = {.file = open_memstream(&j->bytes, &j->size)};
	bool is_new = !j->b.r;

	CHECK(out.file);
	if (is_new) {
		recording_write_head(&out, j->r);
		recording_builder_init(&j->b, j->r, in);
	}
	j->b.in = *in;
	j->b.out = &out;
	if (is_new || j->mark != h->change_mark) /* another journal has had changes */
		recording_build_all(&j->b);
	else
		recording_build_changes(&j->b, j->current >> (h->shift - j->shift));
	history_forget_changes(h);
	j->mark = h->change_mark;
	j->current = h->current;
	j->shift = h->shift;
	write_changes(j, &out);
	j->b.out = NULL;
	CHECK(!fclose(out.file));
}

/* The first part appears atomically. */
static int write_first(struct recording_journal *j)
{
	struct outfile out;
	int rc = outfile_open(j->path, &out);

	if (rc != 0)
		return rc;
	if (fwrite(j->bytes, 1, j->size, out.file) != j->size) {
		rc = -errno;
		outfile_abort(&out);
		return rc;
	}
	rc = outfile_commit(&out);
	if (rc != 0)
		return rc;
	rc = stream_open(j->path, O_WRONLY | O_APPEND, 0);
	j->fd = limit_keep(rc);
	return rc < 0 ? rc : j->fd < 0 ? -errno : 0;
}

static int write_next(struct recording_journal *j)
{
	while (j->done < j->size) {
		ssize_t n = write(j->fd, j->bytes + j->done, j->size - j->done);

		if (n >= 0)
			j->done += (size_t)n;
		else if (errno != EINTR)
			return -errno;
	}
	return 0;
}

int recording_journal_flush(struct recording_journal *j)
{
	if (!j->bytes)
		return 0;
	int rc = j->fd < 0 ? write_first(j) : write_next(j);

	if (rc != 0)
		return rc;
	free(j->bytes);
	j->bytes = NULL;
	j->size = j->done = 0;
	return 0;
}

bool recording_journal_is_removed(const struct recording_journal *j)
{
	struct stat own;

	return j->fd >= 0 && fstat(j->fd, &own) == 0 && own.st_nlink == 0;
}

bool recording_journal_is_at(const struct recording_journal *j, const char *path)
{
	struct stat there, own;

	return j->fd >= 0 && stat(path, &there) == 0 && fstat(j->fd, &own) == 0 &&
	       there.st_ino == own.st_ino && there.st_dev == own.st_dev;
}
