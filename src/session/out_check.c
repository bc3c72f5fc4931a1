/*
 * Checks all output files before the program starts. Inputs are the events of a replay, a core
 * file and the program itself.
 *
 * The program's process id is not known yet, so a number that no process has is used, and "x.%p"
 * does not match an existing name.
 */
#include "session/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"
#include "base/proc.h"
#include "output/outfile.h"
#include "session/record/recording_values.h"
#include "session/run.h"
#include "session/session.h"

#define NO_PID UINT32_MAX

/* -- names -- */

/* A file and its purpose: "--flame" or "the program". */
struct checked_file {
	const char *what;
	char *path;
	struct file_id id;
	bool is_stdout;
};

struct checked_files {
	VEC(struct checked_file) list;
	size_t input_count; /* the first value of the list */
};

/* Takes ownership of @path. */
static struct checked_file *add_file(struct checked_files *files, const char *what, char *path)
{
	struct checked_file *f = vec_add(&files->list);

	*f = (struct checked_file){.what = what, .path = path};
	file_id_init(&f->id, path);
	return f;
}

static int make_path(struct run *run, const struct out_name *name, char **path_out)
{
	uint32_t sequence = run->sequence;
	int rc = 0;

	if (out_rows[name->which].kind == OUT_LITERAL)
		*path_out = xstrdup(out_pattern(run->options, name->which));
	else
		rc = out_path(run, name, path_out);
	run->sequence = sequence; /* does not use up a number */
	return rc;
}

/* Adds the files of @name, one for each source. */
static int add_sources(struct run *run, struct checked_files *files, struct out_name *name)
{
	const struct out_row *row = &out_rows[name->which];
	uint32_t traced = row->has_sources ? options_sources(run->options) : 1u << SOURCE_HEAP;
	int rc = 0;

	for (int k = 0; k < SOURCE_COUNT && rc == 0; k++) {
		char *path;

		name->source = (enum memory_source_kind)k;
		if (!(traced & 1u << k))
			continue;
		rc = make_path(run, name, &path);
		if (rc == 0)
			add_file(files, row->option, path)->is_stdout =
				row->kind < OUT_LITERAL && strcmp(path, "-") == 0;
	}
	return rc;
}

/* Adds the files of process @pid for an output; @needs_pid: another one has the plain names. */
static int add_names(struct run *run, struct checked_files *files, enum output which,
		     uint32_t pid, bool needs_pid)
{
	bool is_own = out_rows[which].kind == OUT_OWN;
	struct out_name name = {.which = which, .pid = is_own ? (uint32_t)getpid() : pid,
				.needs_pid = needs_pid && !is_own};
	int rc = 0;

	for (size_t i = 0; rc == 0 && (name.pattern = out_pattern_at(run->options, which, i)); i++)
		rc = add_sources(run, files, &name);
	return rc;
}

static void add_inputs(const struct run *run, struct checked_files *files)
{
	const struct options *o = run->options;

	if (o->files.replay)
		add_file(files, "the events of --replay", xstrdup(o->files.replay));
	if (options_core(o))
		add_file(files, "the core file", xstrdup(options_core(o)));
	if (o->command) {
		const char *name = o->command[0];
		bool is_path = options_core(o) || strchr(name, '/');
		char *program = is_path ? xstrdup(name) : program_find(name);

		if (program)
			add_file(files, "the program", program);
	}
	for (uint32_t i = 0; i < o->attach.pid_count; i++)
		add_file(files, "the program",
			 xasprintf("/proc/%d/exe", (int)proc_find_reader(o->attach.pid[i])));
	files->input_count = files->list.count;
}

static int check_differ(const struct checked_files *files)
{
	for (size_t i = files->input_count; i < files->list.count; i++) {
		const struct checked_file *out = &files->list.data[i];
		for (size_t k = 0; k < i; k++) {
			const struct checked_file *other = &files->list.data[k];
			/*
			 * standard output takes the profiles of several sources one after the
			 * other
			 */
			if (out->what == other->what ||
			    (!(out->is_stdout && other->is_stdout) &&
			     !file_id_is_same(&out->id, &other->id)))
				continue;
			if (k < files->input_count)
				log_error("%s would overwrite %s, %s", out->what, other->what,
					  out->path);
			else
				log_error("%s and %s would write the same file, %s", other->what,
					  out->what,
					  out->is_stdout ? "standard output" : out->path);
			return -EINVAL;
		}
	}
	return 0;
}

static void free_files(struct checked_files *files)
{
	for (size_t i = 0; i < files->list.count; i++) {
		file_id_deinit(&files->list.data[i].id);
		free(files->list.data[i].path);
	}
	vec_deinit(&files->list);
}

int out_check_names(struct options *options)
{
	struct run run = {.options = options}; /* the parts that names need */
	struct checked_files files = {0};
	int rc = 0;

	add_inputs(&run, &files);
	for (enum output i = 0; i < OUTPUTS && rc == 0; i++) {
		if (out_pattern(options, i))
			rc = add_names(&run, &files, i, NO_PID, options_attach_many(options));
	}
	if (rc == 0)
		rc = check_differ(&files);
	free_files(&files);
	return rc;
}

static void add_files_of(struct run *run, struct checked_files *files, uint32_t pid)
{
	for (enum output i = 0; i < OUTPUTS; i++) {
		if (!out_pattern(run->options, i))
			continue;
		add_names(run, files, i, pid, false);
		add_names(run, files, i, pid, true);
	}
}

/* The parts of recordings: those that are complete, those being written, and the current ones. */
static void add_parts(struct run *run, struct checked_files *files)
{
	static const char what[] = "--record";

	for (size_t i = 0; i < run->parts.count; i++) {
		const struct run_part *p = &run->parts.data[i];

		if (p->path)
			add_file(files, what, xstrdup(p->path));
		if (p->elsewhere)
			add_file(files, what, xstrdup(p->elsewhere));
	}
	for (size_t i = 0; i < run->writers.count; i++)
		add_file(files, what, xstrdup(run->writers.data[i].path));
	for (size_t i = 0; i < run->sessions.count; i++) {
		const struct recording_run *rr = run->sessions.data[i]->recording;

		if (rr && rr->path)
			add_file(files, what, xstrdup(rr->path));
	}
}

const char *out_find_use(struct run *run, const char *path)
{
	struct checked_files files = {0};
	struct file_id id;
	const char *use = NULL;

	file_id_init(&id, path);
	add_inputs(run, &files);
	for (size_t i = 0; i < run->sessions.count; i++)
		add_files_of(run, &files, run->sessions.data[i]->process.pid);
	add_parts(run, &files);
	for (size_t i = 0; i < files.list.count && !use; i++) {
		if (file_id_is_same(&files.list.data[i].id, &id))
			use = files.list.data[i].what;
	}
	free_files(&files);
	file_id_deinit(&id);
	return use;
}

/* -- can they be written? -- */

/* @rc: why @path, of an output that @option names, cannot be written. */
static void explain_place(const char *option, const char *path, int rc)
{
	const char *slash = strrchr(path, '/'), *cause = strerror(-rc);
	_cleanup_free_ char *directory =
		slash ? xasprintf("%.*s", MAX((int)(slash - path), 1), path) : xstrdup(".");

	unsigned links;

	if (path_check_links(path, &links) != 0)
		outfile_log_error(path, rc);
	else if (rc == -ENOENT && access(directory, F_OK) == 0) /* /proc */
		log_error("cannot write %s: files cannot be made in %s; %s=FILE names another "
			  "place, as %s=/tmp/%s", path, directory, option, option,
			  slash ? slash + 1 : path);
	else if (rc == -ENOENT)
		log_error("cannot write %s: there is no directory %s (mkdir -p %s makes it)", path,
			  directory, directory);
	else if (rc == -EACCES || rc == -EROFS || rc == -EPERM)
		log_error("cannot write %s: %s; %s=FILE names another place, as %s=/tmp/%s", path,
			  cause, option, option, slash ? slash + 1 : path);
	else
		log_error("cannot write %s: %s", path, cause);
}

static int check_place(struct run *run, const struct out_name *name)
{
	_cleanup_free_ char *path = NULL;
	int rc = make_path(run, name, &path);

	/* opening a FIFO may wait for a reader: not before there is output */
	if (rc != 0 || file_name_is_shared(path))
		return rc;
	rc = outfile_put(path, NULL, NULL);
	if (rc != 0)
		explain_place(out_rows[name->which].option, path, rc);
	return rc;
}

int out_check_places(struct run *run)
{
	const struct options *o = run->options;
	int rc = 0;

	for (enum output i = 0; i < OUTPUTS; i++) {
		struct out_name name = {.which = i, .pid = (uint32_t)getpid(),
					.needs_pid = out_rows[i].kind != OUT_OWN &&
						     options_attach_many(o)};

		if (i == OUT_SAMPLES || i == OUT_LOG) /* they are opened anyway */
			continue;
		for (size_t k = 0; rc == 0 && (name.pattern = out_pattern_at(o, i, k)); k++)
			rc = check_place(run, &name);
	}
	return rc;
}
