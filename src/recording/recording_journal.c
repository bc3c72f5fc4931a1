/*
 * Appends to the file of a recording. Names, objects and nodes are kept; all else is passed on.
 */
#include "recording/recording_journal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/stream.h"
#include "profile/history.h"
#include "recording/recording_write.h"

struct recording_journal {
	struct recording_out out;
	struct recording *r;
	struct recording_builder b;
	size_t texts;              /* written so far */
	size_t written[RECORDING_TABLES]; /* likewise, of the tables that are kept */
	uint32_t current, shift;   /* the interval at the last call */
};

struct recording_journal *recording_journal_open(const char *path, uint64_t interval)
{
	FILE *file = stream_create(path);

	if (!file)
		return NULL;
	struct recording_journal *j = xcalloc(1, sizeof(*j));

	j->out.file = file;
	j->r = recording_new();
	j->r->interval = interval;
	j->texts = 1;
	recording_write_head(&j->out, j->r);
	return j;
}

void recording_journal_close(struct recording_journal *j)
{
	if (!j)
		return;
	fclose(j->out.file);
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

static void write_changes(struct recording_journal *j)
{
	recording_write_texts(&j->out, j->r, j->texts);
	j->texts = j->r->text.count;
	for (int i = 0; i < RECORDING_TABLES; i++) {
		enum recording_table_id id = (enum recording_table_id)i;

		recording_write_rows(&j->out, j->r, id, j->written[id]);
		if (is_kept(id))
			j->written[id] = recording_rows(j->r, id);
		else
			recording_truncate(j->r, id, 0);
	}
	recording_write_sync(&j->out);
}

int recording_journal_append(struct recording_journal *j, const struct report *report,
			     const struct recording_names *names, const struct flows *releases)
{
	struct history *h = profile_history(report->profile);

	if (!j->b.r) {
		recording_builder_init(&j->b, j->r, report, names);
		j->b.releases = releases;
		recording_build_all(&j->b);
	} else {
		j->b.report = report;
		j->b.names = *names;
		j->b.releases = releases;
		recording_build_changes(&j->b, j->current >> (h->shift - j->shift));
	}
	history_forget_changes(h);
	j->current = h->current;
	j->shift = h->shift;
	write_changes(j);
	errno = 0;
	return fflush(j->out.file) || ferror(j->out.file) ? (errno ? -errno : -EIO) : 0;
}
