/*
 * One table lists all outputs. Inputs are the events of a replay, a core file and the program
 * itself.
 *
 * The program's process id is not known yet, so a number that no process has is used, and "x.%p"
 * does not match an existing name.
 */
#include "session/session_files.h"

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
#include "session/result_file.h"
#include "session/run.h"
#include "session/session.h"

#define NO_PID UINT32_MAX

enum output_kind { ONE_FILE, MASSIF_FILES, PATH_FILES, LITERAL, LOG }; /* LITERAL: not a pattern */

struct output {
	const char *option;
	enum output_kind kind;
	size_t offset; /* of its name in struct options */
	/* NULL: the name alone enables it */
	bool (*is_wanted)(const struct options *o);
};

static bool wants_xtree(const struct options *o)
{
	return o->files.xtree_mode != XTREE_NONE;
}

static bool wants_memusage(const struct options *o)
{
	return o->memusage.count;
}

static bool wants_samples(const struct options *o)
{
	return o->samples.ms;
}

static bool inspects(const struct options *o)
{
	return o->inspect.what || o->inspect.at_exit;
}

#define AT(field) offsetof(struct options, field)

static const struct output outputs[] = {
	{"--massif-out-file", MASSIF_FILES, AT(files.massif), options_write_massif},
	{"--xtree-memory-file", ONE_FILE, AT(files.xtree), wants_xtree},
	{"--leaks-out", ONE_FILE, AT(leaks.out), options_report_leaks},
	{"--inspect-out", ONE_FILE, AT(inspect.out), inspects},
	{"--folded", PATH_FILES, AT(files.folded), NULL},
	{"--flame", PATH_FILES, AT(files.flame), NULL},
	{"--memusage-out", ONE_FILE, AT(memusage.out), wants_memusage},
	{"--data", ONE_FILE, AT(memusage.data_file), NULL},
	{"--sample-out", LITERAL, AT(samples.out), wants_samples},
	{"--record", ONE_FILE, AT(files.record), NULL},
	{"--html", ONE_FILE, AT(files.html), NULL},
	{"--events", ONE_FILE, AT(files.events), NULL},
	{"--log-file", LOG, AT(messages.log_file), NULL},
};

/* The name as given by the user; NULL = not written. */
static const char *pattern_of(const struct run *run, const struct output *out)
{
	const char *pattern = *(const char *const *)((const char *)run->options + out->offset);

	return !out->is_wanted || out->is_wanted(run->options) ? pattern : NULL;
}

/* -- names -- */

static int check_pattern(const struct output *out, const char *pattern)
{
	_cleanup_free_ char *why = NULL;
	int rc = pattern_check(pattern, &why);

	if (rc != 0)
		log_error("%s: %s", out->option, why);
	return rc;
}

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

static const char *source_of(const struct run *run, const struct output *out,
			     enum memory_source_kind kind)
{
	switch (out->kind) {
	case MASSIF_FILES:
		return memory_source_in_massif(kind);
	case PATH_FILES:
		return memory_source_in_paths(options_sources(run->options), kind);
	default:
		return NULL;
	}
}

/* The process that a file belongs to. */
struct owner {
	uint32_t pid;
	bool needs_pid; /* part of the name, since another process has the plain one */
};

static struct owner first_owner(const struct run *run, uint32_t pid)
{
	return (struct owner){.pid = pid, .needs_pid = options_attach_many(run->options)};
}

/* The path of @out's file for @source if @owner writes it. */
static int make_path(struct run *run, const struct output *out, const char *source,
		     struct owner owner, char **path_out)
{
	const struct file_request request = {
		.option = out->option,
		.pattern = pattern_of(run, out),
		.source = source,
		.pid = owner.pid,
		.needs_pid = owner.needs_pid && out->kind != LOG,
	};
	uint32_t sequence = run->sequence;
	int rc = 0;

	if (out->kind == LITERAL)
		*path_out = xstrdup(request.pattern);
	else
		rc = run_file_name(run, &request, path_out);
	run->sequence = sequence; /* does not use up a number */
	return rc;
}

static int add_name(struct run *run, struct checked_files *files, const struct output *out,
		    const char *source, struct owner owner)
{
	char *path;
	if (out->kind == LOG)
		owner.pid = (uint32_t)getpid();
	int rc = make_path(run, out, source, owner, &path);

	if (rc == 0) {
		struct checked_file *f = add_file(files, out->option, path);
		f->is_stdout = out->kind < LITERAL && strcmp(path, "-") == 0;
	}
	return rc;
}

static int add_names(struct run *run, struct checked_files *files, const struct output *out,
		     struct owner owner)
{
	bool has_sources = out->kind == MASSIF_FILES || out->kind == PATH_FILES;
	uint32_t traced = options_sources(run->options);
	int rc = 0;

	for (enum memory_source_kind k = 0; k < SOURCE_COUNT && rc == 0; k++) {
		if (has_sources ? traced & 1u << k : k == 0)
			rc = add_name(run, files, out, source_of(run, out, k), owner);
	}
	return rc;
}

/* The path at which @name would be executed; NULL if not found. */
static char *find_program(const char *name)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/'))
		return xstrdup(name);
	for (const char *at = path; at && *at;) {
		size_t n = strcspn(at, ":");
		char *found = xasprintf("%.*s/%s", n ? (int)n : 1, n ? at : ".", name);

		if (access(found, X_OK) == 0)
			return found;
		free(found);
		at += n + (at[n] == ':');
	}
	return NULL;
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
		char *program = options_core(o) ? xstrdup(name) : find_program(name);

		if (program)
			add_file(files, "the program", program);
	}
	for (uint32_t i = 0; i < o->attach.pid_count; i++)
		add_file(files, "the program",
			 xasprintf("/proc/%d/exe", (int)proc_find_reader(o->attach.pid[i])));
	files->input_count = files->list.count;
}

static bool are_one(const struct checked_file *a, const struct checked_file *b)
{
	return (a->is_stdout && b->is_stdout) || file_id_is_same(&a->id, &b->id);
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
			if (out->what == other->what || !are_one(out, other))
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

int out_files_check_names(struct options *options)
{
	struct run run = {.options = options}; /* the parts that names need */
	struct checked_files files = {0};
	int rc = 0;

	add_inputs(&run, &files);
	for (size_t i = 0; i < ARRAY_SIZE(outputs) && rc == 0; i++) {
		const char *pattern = pattern_of(&run, &outputs[i]);

		if (pattern && outputs[i].kind != LITERAL)
			rc = check_pattern(&outputs[i], pattern);
		if (pattern && rc == 0)
			rc = add_names(&run, &files, &outputs[i], first_owner(&run, NO_PID));
	}
	if (rc == 0)
		rc = check_differ(&files);
	free_files(&files);
	return rc;
}

static void add_files_of(struct run *run, struct checked_files *files, uint32_t pid)
{
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		if (!pattern_of(run, &outputs[i]))
			continue;
		add_names(run, files, &outputs[i], (struct owner){.pid = pid});
		add_names(run, files, &outputs[i], (struct owner){.pid = pid, .needs_pid = true});
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

const char *out_files_find_use(struct run *run, const char *path)
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

static int check_place(struct run *run, const struct output *out)
{
	_cleanup_free_ char *path = NULL;
	struct outfile file;
	int rc = make_path(run, out, NULL, first_owner(run, (uint32_t)getpid()), &path);

	/* opening a FIFO may wait for a reader: not before there is output */
	if (rc != 0 || file_name_is_shared(path))
		return rc;
	rc = outfile_open(path, &file);
	if (rc != 0)
		log_error("cannot write %s: %s", path, strerror(-rc));
	else
		outfile_abort(&file);
	return rc;
}

int out_files_check_places(struct run *run)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(outputs) && rc == 0; i++) {
		/* --sample-out and --log-file are opened anyway */
		if (pattern_of(run, &outputs[i]) && outputs[i].kind < LITERAL)
			rc = check_place(run, &outputs[i]);
	}
	return rc;
}
