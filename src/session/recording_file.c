/* See recording_file.h. */
#include "session/recording_file.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"

int recording_file_flush(struct recording_file *f)
{
	int rc = recording_journal_flush(f->journal);

	if (rc == 0)
		f->covered_ms = f->appended_ms;
	return rc;
}

int recording_file_open(struct recording_file *f, const char *path, uint64_t interval)
{
	if (f->journal && recording_journal_is_removed(f->journal)) {
		recording_journal_close(f->journal);
		*f = (struct recording_file){.was_removed = true};
	}
	if (f->was_removed && !f->covered_ms && access(path, F_OK) == 0)
		return -EEXIST;
	if (!f->journal)
		f->journal = recording_journal_new(path, interval);
	return recording_file_flush(f);
}

void recording_file_leave(const struct recording_file *f, const char *path)
{
	if (f->journal && recording_journal_is_at(f->journal, path))
		log_warn("%s has the first %.1f s and can be read", path,
			 (double)(f->covered_ms / 100) / 10);
}
