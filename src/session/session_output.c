/*
 * Writes the contents of a session's files. Each is complete or missing (outfile); its name is
 * expanded for the process when it is written.
 */
#include "session/session_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/massif.h"
#include "output/outfile.h"
#include "output/xtree.h"
#include "session/file_name.h"
#include "session/final_file.h"
#include "session/rescue.h"
#include "session/session.h"
#include "session/session_files.h"

/* -- massif files -- */

static int close_file(struct outfile *out, int rc)
{
	if (rc == 0)
		return outfile_commit(out);
	outfile_abort(out);
	return rc;
}

static int put_report(FILE *file, const void *ctx)
{
	return massif_write(file, ctx);
}

static int write_report(const char *path, const struct report *r)
{
	struct outfile out;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write(out.file, r));
}

int session_output_massif(struct session *s, const char *path)
{
	struct report r = session_report(s);
	return write_report(path, &r);
}

/*
 * An earlier run in the same directory may have attached to the same process: its profile is
 * renamed with the first free number.
 */
static void keep_earlier(const struct session *s, const char *path)
{
	const struct options *o = s->run->options;
	if (!options_attach(o) || !file_name_has(o->files.massif, "p") ||
	    file_name_is_shared(path))
		return;
	for (struct file_name_parts parts = {.number = 1}; parts.number < 10000; parts.number++) {
		_cleanup_free_ char *moved = file_name_insert(path, &parts);
		if (renameat2(AT_FDCWD, path, AT_FDCWD, moved, RENAME_NOREPLACE) == 0)
			log_info("%s, of an earlier ptmem, is now %s", path, moved);
		else if (errno == EEXIST)
			continue;
		return;
	}
}

static int massif_name(struct session *s, const char *source, const char **path_out)
{
	const struct session_file name = {.option = "--massif-out-file",
					  .pattern = s->run->options->files.massif,
					  .source = source};
	bool is_new = final_file_is_new(s, &name);
	int rc = final_file_name(s, &name, path_out);

	if (rc == 0 && is_new)
		keep_earlier(s, *path_out);
	return rc;
}

static void count_file(const struct session *s, int rc)
{
	s->run->files_failed += rc != 0;
	s->run->files_written += rc == 0 && !s->end.is_draft;
}

int session_output_finish_massif(struct session *s, const struct report *r, const char *source,
				 const char **path_out)
{
	int rc = massif_name(s, source, path_out);

	if (rc == 0) {
		_cleanup_free_ char *plain =
			xasprintf("massif.out.%u%s%s", s->process.pid, source ? "." : "",
				  source ? source : "");
		const struct result result = {"profile", plain, put_report, r};
		rc = final_file_write(s, &result, *path_out);
	}
	count_file(s, rc);
	return rc;
}

void session_output_so_far(struct session *s, char *message, size_t size)
{
	_cleanup_free_ char *path = NULL;
	struct profile *copy = profile_clone(s->heap.profile);
	struct report r = session_report(s);
	unsigned number = ++run_process(s->run, s->process.pid)->numbers;
	int rc = session_files_snapshot_name(s, NULL, number, &path);

	if (rc == 0) {
		profile_finish(copy, clock_now_ns());
		r.profile = copy; /* its frames have the same numbers as the original's */
		rc = write_report(path, &r);
	}
	profile_free(copy);
	if (rc == 0)
		snprintf(message, size, "written to %s", path);
	else
		snprintf(message, size, "cannot write: %s", strerror(-rc));
}

static void write_snapshots_of(struct source *src, unsigned number)
{
	_cleanup_free_ char *path = NULL;
	struct report r;

	const char *name = source_in_massif(src->kind);

	if (session_files_snapshot_name(src->session, name, number, &path) != 0)
		return;
	source_fill_report(src, &r);
	int rc = write_report(path, &r);

	if (rc == 0)
		log_info("all snapshots written to %s", path);
	else
		log_warn("cannot write %s: %s", path, strerror(-rc));
}

void session_output_snapshots(struct session *s, unsigned number)
{
	for (int k = 0; k < SOURCE_COUNT; k++) {
		if (s->source[k].is_traced)
			write_snapshots_of(&s->source[k], number);
	}
}

int session_output_now(struct session *s, const char *path, enum snapshot_kind kind,
		       uint64_t now_ns)
{
	struct report r = session_report(s);
	struct snapshot now;
	struct outfile out;
	profile_current(s->heap.profile, now_ns, &now);
	now.kind = kind;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write_now(out.file, &r, &now));
}

struct xtree {
	struct session *session;
	struct xtree_options options;
};

static struct xtree make_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	return (struct xtree){
		.session = s,
		.options.is_massif = xtree_is_massif_name(path),
		.options.time_ms = (now_ns - s->process.start_ns) / 1000000,
		.options.has_whole_names = !s->run->options->files.xtree_compress_strings,
	};
}

static int put_xtree(FILE *file, const void *ctx)
{
	const struct xtree *x = ctx;
	struct session *s = x->session;
	struct report r = session_report(s);
	struct flows *f = s->heap.flows ? flows_rounded(s->heap.flows) :
					  flows_from_profile(s->heap.profile);
	r.filter = s->run->whole_filter;
	r.threshold = 0;
	int rc = xtree_write(file, &r, f, &x->options);
	flows_free(f);
	return rc;
}

int session_output_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	const struct xtree x = make_xtree(s, path, now_ns);
	struct outfile out;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, put_xtree(out.file, &x));
}

void session_output_finish_xtree(struct session *s, uint64_t now_ns)
{
	const struct session_file name = {.option = "--xtree-memory-file",
					  .pattern = s->run->options->files.xtree};
	const char *path;
	if (!s->heap.flows)
		return;
	int rc = final_file_name(s, &name, &path);
	if (rc == 0) {
		const struct xtree x = make_xtree(s, path, now_ns);
		const char *end = x.options.is_massif ? "ms" : "kcg";
		_cleanup_free_ char *plain = xasprintf("xtmemory.%u.%s", s->process.pid, end);
		rc = final_file_write(
			s, &(struct result){"xtree memory report", plain, put_xtree, &x}, path);
		if (rc == 0 && !s->end.is_draft && !session_is_silent(s))
			log_info("xtree memory report: %s",
				 strcmp(path, "-") == 0 ? "standard output" : path);
	}
	count_file(s, rc);
}
