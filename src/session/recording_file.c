/* See recording_file.h. */
#include "session/recording_file.h"

#include <fcntl.h>
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
	if (f->journal)
		return recording_file_flush(f);
	return recording_journal_open(path, f->was_removed ? O_EXCL : O_TRUNC, interval,
				      &f->journal);
}

void recording_file_leave(const struct recording_file *f, const char *path)
{
	if (!f->journal || !recording_journal_is_at(f->journal, path))
		return;
	if (f->covered_ms)
		log_warn("%s has the first %.1f s and can be read", path,
			 (double)(f->covered_ms / 100) / 10);
	else
		unlink(path);
}
