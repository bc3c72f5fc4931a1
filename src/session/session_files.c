/* The names of a session's files, its event file, and the files that are written at its end. */
#include "session/session_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "profile/events.h"
#include "profile/profile.h"
#include "session/result_file.h"
#include "session/session.h"

/* -- names -- */

void session_files_begin(struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);

	if (!s->run->first_pid)
		s->run->first_pid = s->process.pid;
	if (p->has_ended)
		free(p->before);
	if (p->has_ended)
		*p = (struct process_files){
			.pid = p->pid, .numbers = p->numbers, .parts = p->parts,
			.is_reused = true};
	s->image.number = p->images + 1;
	s->process.has_reused_pid = p->is_reused;
	s->process.file_number = 0;
}

void session_files_end(struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);

	p->images += s->image.has_next;
	p->last_number = s->process.file_number;
	p->has_ended = !s->image.has_next;
}

#define NAMES_BEFORE 8u /* are listed; a loop may execute thousands */

void session_files_supersede(struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);
	const struct module *m = run_module(s->run, s->image.program);
	const char *path = m ? text_base_name(m->path) : s->process.command;
	_cleanup_free_ char *old = p->before, *name = text_clean(path, strlen(path));

	p->streams = 0; /* their files are overwritten */
	p->before_peak = MAX(p->before_peak, profile_totals(s->heap.profile)->peak_bytes);
	p->before_count++;
	if (!old)
		p->before = xstrdup(name);
	else if (p->before_count <= NAMES_BEFORE)
		p->before = xasprintf("%s, %s", old, name);
	else if (p->before_count == NAMES_BEFORE + 1)
		p->before = xasprintf("%s, ...", old);
	else
		old = NULL;
}

static unsigned own_number(struct session *s)
{
	if (!s->process.file_number)
		s->process.file_number = ++run_process(s->run, s->process.pid)->numbers;
	return s->process.file_number;
}

static bool needs_pid(const struct session *s, uint32_t first_pid)
{
	return options_attach_many(s->run->options) || (first_pid && first_pid != s->process.pid);
}

int session_files_name(struct session *s, const struct session_file *file, char **path_out)
{
	const struct run *run = s->run;
	const struct file_request request = {
		.option = file->option,
		.pattern = file->pattern,
		.source = file->source,
		.pid = s->process.pid,
		.needs_pid =
			needs_pid(s, file->is_of_counted ? run->first_counted : run->first_pid),
		.number = s->image.has_next || s->process.has_reused_pid ? own_number(s) : 0,
	};

	return run_file_name(s->run, &request, path_out);
}

/* The existing file is that of the previous program: it gets the number of that program's files. */
static void rename_previous(struct session *s, const char *path)
{
	struct process_files *p = run_process(s->run, s->process.pid);

	if (!p->last_number)
		p->last_number = ++p->numbers;
	const struct file_name_parts parts = {.number = p->last_number};
	_cleanup_free_ char *moved = file_name_insert(path, &parts);

	if (rename(path, moved) == 0)
		log_info("%s, of the previous program, is now %s", path, moved);
}

int session_files_stream_name(struct session *s, enum stream_file which,
			      const struct session_file *file, char **path_out)
{
	struct process_files *p = run_process(s->run, s->process.pid);
	bool has_predecessor = p->streams & 1u << which;
	int rc = session_files_name(s, file, path_out);

	if (rc != 0)
		return rc;
	p->streams |= 1u << which;
	if (has_predecessor && !file_name_is_shared(*path_out) &&
	    !file_name_has(file->pattern, "n"))
		rename_previous(s, *path_out);
	return 0;
}

int session_files_numbered_name(struct session *s, const struct session_file *file,
				unsigned number, const char *fallback, char **path_out)
{
	struct file_request request = {
		.option = file->option,
		.pattern = file->pattern,
		.source = file->source,
		.pid = s->process.pid,
		.needs_pid = needs_pid(s, s->run->first_pid),
		.number = number,
		.part = file->part,
	};
	int rc = run_file_name(s->run, &request, path_out);

	if (rc != 0 || !fallback || !file_name_is_shared(*path_out))
		return rc;
	free(*path_out);
	request.pattern = fallback;
	return run_file_name(s->run, &request, path_out);
}

int session_files_snapshot_name(struct session *s, const char *source, unsigned number,
				char **path_out)
{
	const struct session_file file = {.option = "--massif-out-file",
					  .pattern = s->run->options->files.massif,
					  .source = source};

	return session_files_numbered_name(s, &file, number, "massif.out.%p", path_out);
}

void session_files_announce(const struct session *s, const char *path)
{
	if (!session_is_silent(s))
		log_info("  written to   %s", strcmp(path, "-") == 0 ? "standard output" : path);
}

/* -- events -- */

void session_files_open_events(struct session *s, bool is_first)
{
	const struct session_file name = {.option = "--events",
					  .pattern = s->run->options->files.events};
	FILE *file = is_first ? s->run->events_file : NULL;

	if (!file && (!name.pattern || s->run->events_file))
		return;
	if (!file && session_files_stream_name(s, STREAM_EVENTS, &name, &s->events.path) != 0)
		return;
	if (!file && !(file = s->events.stream = stream_create(s->events.path))) {
		log_error("cannot write %s: %s", s->events.path, strerror(errno));
		s->run->files_failed++;
		return;
	}
	s->events.writer = events_writer_new(file);
	events_writer_header(s->events.writer, s->process.command, s->process.pid,
			     s->process.start_ns);
	if (s->heap.sample.interval)
		events_writer_sampling(s->events.writer, s->heap.sample.interval,
				       s->heap.sample.seed);
}

/* The events that are in the file can be replayed. */
static void log_cut(const struct session *s, const char *path, int err)
{
	uint64_t last_ns;

	if (events_cut(path, &last_ns))
		log_error("cannot write %s: %s; it has the events of the first %.3f s, the others "
			  "are missing",
			  path, strerror(-err),
			  (double)(MAX(last_ns, s->process.start_ns) - s->process.start_ns) / 1e9);
	else
		log_error("cannot write %s: %s; the events are missing", path, strerror(-err));
}

void session_files_close_events(struct session *s)
{
	int rc = s->events.writer ? events_writer_free(s->events.writer) : 0;

	s->events.writer = NULL;
	if (s->events.stream && fclose(s->events.stream) != 0 && rc == 0)
		rc = -errno;
	s->events.stream = NULL;
	if (rc != 0) {
		log_cut(s, s->events.path ? s->events.path : s->run->options->files.events, rc);
		s->run->files_failed++;
	}
	free(s->events.path);
	s->events.path = NULL;
}

static bool is_same(const struct final_file *f, const struct session_file *file)
{
	bool has_source = f->source && file->source;

	return strcmp(f->option, file->option) == 0 &&
	       (has_source ? strcmp(f->source, file->source) == 0 : f->source == file->source);
}

static const struct final_file *find(const struct session *s, const struct session_file *file)
{
	for (size_t i = 0; i < s->end.files.count; i++) {
		if (is_same(&s->end.files.data[i], file))
			return &s->end.files.data[i];
	}
	return NULL;
}

bool final_file_is_new(const struct session *s, const struct session_file *file)
{
	return !find(s, file);
}

int final_file_name(struct session *s, const struct session_file *file, const char **path_out)
{
	const struct final_file *known = find(s, file);
	char *path;
	int rc = known ? 0 : session_files_name(s, file, &path);

	if (rc != 0)
		return rc;
	if (!known)
		*vec_add(&s->end.files) = (struct final_file){file->option, file->source, path};
	*path_out = known ? known->path : path;
	return 0;
}

int final_file_write(const struct session *s, const struct result *r, const char *path)
{
	if (!s->end.is_draft)
		return fallback_write(r, path);
	if (!file_name_is_shared(path))
		result_write(r, path); /* if it fails, so will the next time */
	return 0;
}

int final_file_put(struct session *s, const struct session_file *file, const struct result *r)
{
	const char *path;
	int rc = final_file_name(s, file, &path);

	if (rc == 0)
		rc = final_file_write(s, r, path);
	if (rc == 0 && !s->end.is_draft)
		session_files_announce(s, path);
	return rc;
}

void final_files_deinit(struct session *s)
{
	for (size_t i = 0; i < s->end.files.count; i++)
		free(s->end.files.data[i].path);
	vec_deinit(&s->end.files);
}
