/*
 * The files of a session. Each is whole or absent (outfile), and its name is
 * expanded when it is written, for the process that it is about.
 */
#include "session_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/xtree.h"
#include "session.h"

int session_file_name(struct session *s, const char *option, const char *pattern, char **path_out)
{
	char *path, *next;
	int rc = run_expand(s->run, option, pattern, s->pid, &path);
	if (rc != 0)
		return rc;
	uint32_t sequence = s->run->sequence;
	if (s->has_next_image && strcmp(path, "-") != 0 &&
	    run_expand(s->run, option, pattern, s->pid, &next) == 0) {
		/* the next image would write the same file: this one's gets its number */
		bool collides = strcmp(next, path) == 0;
		free(next);
		if (collides) {
			next = path;
			path = xasprintf("%s.%u", path, s->image);
			free(next);
		}
	}
	s->run->sequence = sequence;
	*path_out = path;
	return 0;
}

struct report session_report(struct session *s)
{
	struct report r;
	source_fill_report(&s->source[SOURCE_HEAP], &r);
	return r;
}

static int close_file(struct outfile *out, int rc)
{
	if (rc == 0)
		return outfile_commit(out);
	outfile_abort(out);
	return rc;
}

static int write_report(const char *path, const struct report *r)
{
	struct outfile out;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write(out.file, r));
}

int session_write_massif(struct session *s, const char *path)
{
	struct report r = session_report(s);
	return write_report(path, &r);
}

/*
 * Where @r goes when its own place is full or gone: a new directory (nobody else's link can be in
 * the way) below the first of these that takes it. 0 and the path, which the caller frees, or an
 * error.
 */
static int rescue_report(const struct session *s, const struct report *r, const char *suffix,
			 char **path_out)
{
	const char *const below[] = { getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm" };
	int rc = -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		if (!below[i] || below[i][0] != '/')
			continue;
		_cleanup_free_ char *directory = xasprintf("%s/ptmem-XXXXXX", below[i]);
		if (!mkdtemp(directory))
			continue;
		_cleanup_free_ char *path =
			xasprintf("%s/massif.out.%d%s", directory, (int)s->pid, suffix);
		rc = write_report(path, r);
		if (rc == 0) {
			*path_out = path;
			path = NULL;
			return 0;
		}
		rmdir(directory);
	}
	return rc;
}

int session_put_massif(struct session *s, const struct report *r, const char *suffix,
		       char **path_out)
{
	_cleanup_free_ char *path = NULL;
	int rc = session_file_name(s, "--massif-out-file", s->run->options->massif_out_file, &path);
	if (rc == 0) {
		*path_out = strcmp(path, "-") == 0 ? xstrdup(path) :
						     xasprintf("%s%s", path, suffix);
		rc = write_report(*path_out, r);
		char *rescued;
		if (rc != 0 && rescue_report(s, r, suffix, &rescued) == 0) {
			log_error("cannot write %s: %s; the profile is in %s", *path_out,
				  strerror(-rc), rescued);
			free(rescued);
		} else if (rc != 0) {
			log_error("cannot write %s: %s", *path_out, strerror(-rc));
		}
	}
	s->run->files_failed += rc != 0;
	s->run->files_written += rc == 0;
	return rc;
}

void session_write_so_far(struct session *s, char *message, size_t size)
{
	_cleanup_free_ char *path = NULL, *own = NULL;
	struct profile *copy = profile_clone(s->profile);
	struct report r = session_report(s);
	int rc = session_file_name(s, "--massif-out-file", s->run->options->massif_out_file, &path);

	if (rc == 0) {
		own = xasprintf("%s.%u", path, ++s->written_now);
		profile_finish(copy, target_clock());
		r.profile = copy; /* its frames have the same numbers */
		rc = write_report(own, &r);
	}
	profile_free(copy);
	if (rc == 0)
		snprintf(message, size, "written to %s", own);
	else
		snprintf(message, size, "cannot write: %s", strerror(-rc));
}

int session_write_now(struct session *s, const char *path, enum snapshot_kind kind, uint64_t now_ns)
{
	struct report r = session_report(s);
	struct snapshot now;
	struct outfile out;
	profile_current(s->profile, now_ns, &now);
	now.kind = kind;
	int rc = outfile_open(path, &out);
	return rc != 0 ? rc : close_file(&out, massif_write_now(out.file, &r, &now));
}

int session_write_xtree(struct session *s, const char *path, uint64_t now_ns)
{
	struct report r = session_report(s);
	struct flows *live = s->flows ? NULL : flows_from_profile(s->profile);
	const struct xtree_options xo = {
		.is_massif = xtree_is_massif_name(path),
		.time_ms = (now_ns - s->start_ns) / 1000000,
		.has_whole_names = !s->run->options->xtree_compress_strings,
	};
	struct outfile out;
	r.filter = s->run->whole_filter;
	r.threshold = 0;
	int rc = outfile_open(path, &out);
	if (rc == 0)
		rc = close_file(&out, xtree_write(out.file, &r, s->flows ? s->flows : live, &xo));
	flows_free(live);
	return rc;
}

void session_finish_xtree(struct session *s, uint64_t now_ns)
{
	_cleanup_free_ char *path = NULL;
	if (!s->flows)
		return;
	int rc = session_file_name(s, "--xtree-memory-file", s->run->options->xtree_memory_file,
				   &path);
	if (rc == 0) {
		rc = session_write_xtree(s, path, now_ns);
		if (rc != 0)
			log_error("cannot write %s: %s", path, strerror(-rc));
		else if (!session_is_silent(s))
			log_info("xtree memory report: %s", path);
	}
	s->run->files_failed += rc != 0;
	s->run->files_written += rc == 0;
}
