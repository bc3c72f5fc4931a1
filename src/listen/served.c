/* See served.h. */
#include "listen/served.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_format.h"

#define MAX_FILE (UINT64_C(1) << 30) /* maximum number of bytes read from a file */

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

/* The first @size bytes of @fd, to be freed by the caller; NULL = they cannot be read. */
static char *read_bytes(int fd, uint64_t size)
{
	size_t done = 0;

	if (fd < 0 || !size || size > MAX_FILE)
		return NULL;
	char *data = xmalloc(size);

	while (done < size) {
		ssize_t n = pread(fd, data + done, size - done, (off_t)done);

		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == size)
		return data;
	free(data);
	return NULL;
}

/* @fd: -1 = it is the same as before. */
static void set_inspection(struct served *s, const struct listen_process *info, int fd)
{
	if (fd < 0 || info->inspection == s->inspection_number)
		return;
	_cleanup_free_ char *data = read_bytes(fd, info->inspection_size);

	recording_free(s->inspection);
	s->inspection = data ? recording_read_tables(data, info->inspection_size) : NULL;
	s->inspection_number = info->inspection;
}

static void forget_graph(struct served *s)
{
	if (s->graph_size)
		close(s->graph);
	s->graph_size = 0;
}

/* Owns @fd; -1 = it is the same as before. */
static void set_graph(struct served *s, const struct listen_process *info, int fd)
{
	if (fd >= 0 && info->graph_size && info->graph != s->graph_number) {
		forget_graph(s);
		s->graph = fd;
		s->graph_size = info->graph_size;
		s->graph_number = info->graph;
	} else if (fd >= 0) {
		close(fd);
	}
}

char *served_graph(const struct served *s, size_t *size_out)
{
	*size_out = s->graph_size;
	return s->graph_size ? read_bytes(s->graph, s->graph_size) : NULL;
}

void served_add(struct served_table *t, const struct listen_process *info,
		struct served_files files)
{
	struct served *s = find_same(t, info);

	if (!s) {
		s = vec_add(&t->list);
		*s = (struct served){.journal = -1};
	}
	uint64_t journal_size = s->info.journal_size;

	s->info = *info;
	if (files.journal >= 0) {
		forget_journal(s);
		forget_recording(s);
		s->journal = files.journal;
	} else {
		s->info.journal_size = journal_size;
	}
	set_inspection(s, info, files.inspection);
	if (files.inspection >= 0)
		close(files.inspection);
	set_graph(s, info, files.graph);
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
		forget_graph(s);
		recording_free(s->inspection);
	}
	t->list.count = kept;
	t->left_out = done->left_out;
}

void served_rest(struct served_table *t)
{
	for (size_t i = 0; i < t->list.count; i++)
		forget_recording(&t->list.data[i]);
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
static char *read_journal(const struct served *s)
{
	return read_bytes(s->journal, s->info.journal_size);
}

/* Its texts have the numbers after those of the journal, which has no inspection itself. */
static void write_inspection(struct recording_out *out, const struct served *s,
			     const char *journal)
{
	_cleanup_free_ char *why = NULL;
	struct recording *r;

	if (!s->inspection || recording_read(journal, s->info.journal_size, &r, &why) != 0)
		return;
	size_t texts = r->text.count;

	recording_copy_inspection(s->inspection, r);
	recording_write_texts(out, r, texts);
	for (int id = RECORDING_INSPECTED; id < RECORDING_INSPECTED_END; id++)
		recording_write_rows(out, r, (enum recording_table_id)id, 0);
	recording_free(r);
}

/* Its chunks are complete: more, one of which says that this is a copy, follow them. */
char *served_copy(const struct served *s, size_t *size_out)
{
	_cleanup_free_ char *journal = read_journal(s);
	char *data = NULL;

	if (!journal)
		return NULL;
	struct recording_out out = {.file = open_memstream(&data, size_out)};
	CHECK(out.file);
	fwrite(journal, s->info.journal_size, 1, out.file);
	write_inspection(&out, s, journal);
	recording_write_copy(&out);
	recording_write_sync(&out);
	CHECK(!fclose(out.file));
	return data;
}

const struct recording *served_recording(const struct served_table *t, struct served *s)
{
	_cleanup_free_ char *data = NULL, *why = NULL;

	if (s->recording)
		return s->recording;
	data = read_journal(s);
	if (!data || recording_read(data, s->info.journal_size, &s->recording, &why) != 0)
		return NULL;
	recording_copy_inspection(s->inspection, s->recording);
	if (s->info.state < LISTEN_ENDED) { /* the journal has it only at the end */
		_cleanup_free_ char *text =
			xasprintf("%.1f", (double)s->info.totals.stopped_ns / 1e6);

		recording_set_meta(s->recording, "overhead", text);
	}
	recording_resolve(t->lines, s->recording, s->info.pid);
	return s->recording;
}
