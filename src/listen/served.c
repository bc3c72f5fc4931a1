/* See served.h. */
#include "listen/served.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_read.h"
#include "recording/recording_write.h"

#define MAX_JOURNAL (UINT64_C(1) << 30) /* maximum number of bytes read from a journal */

static void forget_recording(struct served *s)
{
	recording_free(s->recording);
	s->recording = NULL;
}

static void forget_journal(struct served *s)
{
	if (s->journal >= 0)
		close(s->journal);
	s->journal = -1;
}

void served_begin(struct served_table *t)
{
	for (size_t i = 0; i < t->list.count; i++)
		t->list.data[i].is_there = false;
}

static struct served *find_same(struct served_table *t, const struct listen_process *info)
{
	for (size_t i = 0; i < t->list.count; i++) {
		struct served *s = &t->list.data[i];

		if (s->info.pid == info->pid && s->info.start_ns == info->start_ns)
			return s;
	}
	return NULL;
}

void served_add(struct served_table *t, const struct listen_process *info, int journal)
{
	struct served *s = find_same(t, info);

	if (!s) {
		s = vec_add(&t->list);
		*s = (struct served){.journal = -1};
	}
	if (journal >= 0) {
		forget_journal(s);
		s->journal = journal;
	}
	if (journal >= 0 || info->journal_size != s->info.journal_size)
		forget_recording(s);
	s->info = *info;
	s->is_there = true;
}

void served_end(struct served_table *t, const struct listen_done *done)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->list.count; i++) {
		struct served *s = &t->list.data[i];

		if (s->is_there) {
			t->list.data[kept++] = *s;
			continue;
		}
		forget_recording(s);
		forget_journal(s);
	}
	t->list.count = kept;
	t->left_out = done->left_out;
}

struct served *served_find(const struct served_table *t, uint32_t pid)
{
	for (size_t i = 0; i < t->list.count; i++) {
		if (!pid || t->list.data[i].info.pid == pid)
			return &t->list.data[i];
	}
	return NULL;
}

/* The complete part of its journal, to be freed by the caller; NULL = there is none. */
static char *read_journal(const struct served *s, size_t *size_out)
{
	size_t size = s->info.journal_size, done = 0;

	if (s->journal < 0 || !size || size > MAX_JOURNAL)
		return NULL;
	char *data = xmalloc(size);

	while (done < size) {
		ssize_t n = pread(s->journal, data + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == size) {
		*size_out = size;
		return data;
	}
	free(data);
	return NULL;
}

/* Its chunks are complete: one more, which says that this is a copy, follows them. */
char *served_copy(const struct served *s, size_t *size_out)
{
	_cleanup_free_ char *journal = read_journal(s, size_out);
	char *data = NULL;

	if (!journal)
		return NULL;
	struct recording_out out = {.file = open_memstream(&data, size_out)};
	CHECK(out.file);
	fwrite(journal, s->info.journal_size, 1, out.file);
	recording_write_copy(&out);
	recording_write_sync(&out);
	CHECK(!fclose(out.file));
	return data;
}

/* The journal has it only at the end. */
static void set_overhead(const struct served *s)
{
	_cleanup_free_ char *text = xasprintf("%.1f", (double)s->info.totals.stopped_ns / 1e6);

	recording_set_meta(s->recording, "overhead", text);
}

const struct recording *served_recording(const struct served_table *t, struct served *s)
{
	_cleanup_free_ char *data = NULL, *why = NULL;
	size_t size;

	if (s->recording)
		return s->recording;
	data = read_journal(s, &size);
	if (!data || recording_read(data, size, &s->recording, &why) != 0)
		return NULL;
	if (s->info.state == LISTEN_RUNS)
		set_overhead(s);
	recording_lines_fill(t->lines, s->recording, s->info.pid);
	return s->recording;
}
