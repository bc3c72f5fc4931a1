/*
 * The table of outputs, the names of their files, and writing these: whole, or elsewhere, or not
 * at all.
 */
#include "session/out.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"
#include "output/outfile.h"
#include "session/record/recording_values.h"
#include "session/session.h"

/* -- the table -- */

#define NAME(name, field) .option = name, .pattern = offsetof(struct options, field)
#define WRITTEN "  written to   "

const struct out_row out_rows[OUTPUTS] = {
	[OUT_MASSIF] = {NAME("--massif-out-file", files.massif), .kind = OUT_FINAL,
			.has_sources = true, .what = "profile", .fallback = "massif.out"},
	[OUT_XTREE] = {NAME("--xtree-memory-file", files.xtree), .kind = OUT_FINAL,
		       .what = "xtree memory report", .fallback = "xtmemory",
		       .announce = "xtree memory report: "},
	[OUT_LEAKS] = {NAME("--leaks-out", leaks.out), .kind = OUT_EACH,
		       .what = "list of leaks", .fallback = "leaks", .announce = WRITTEN},
	[OUT_INSPECT] = {NAME("--inspect-out", inspect.out), .kind = OUT_EACH,
			 .what = "inspection", .fallback = "inspect", .announce = WRITTEN},
	[OUT_GRAPH] = {NAME("--graph-out", graph.out), .kind = OUT_EACH, .what = "heap graph",
		       .fallback = "graph", .announce = WRITTEN},
	[OUT_FOLDED] = {NAME("--folded", files.folded), .kind = OUT_FINAL, .has_sources = true,
			.what = "folded stacks", .fallback = "folded", .announce = WRITTEN},
	[OUT_FLAME] = {NAME("--flame", files.flame), .kind = OUT_FINAL, .has_sources = true,
		       .what = "flame graph", .fallback = "flame", .announce = WRITTEN},
	[OUT_MEMUSAGE] = {NAME("--memusage-out", memusage.out), .kind = OUT_EACH,
			  .is_of_counted = true, .what = "summary", .fallback = "memusage",
			  .announce = WRITTEN},
	[OUT_DATA] = {NAME("--data", memusage.data_file), .kind = OUT_STREAM,
		      .is_of_counted = true},
	[OUT_SAMPLES] = {NAME("--sample-out", samples.out), .kind = OUT_LITERAL},
	[OUT_RECORD] = {NAME("--record", files.record), .kind = OUT_STREAM, .what = "recording",
			.fallback = "recording", .announce = WRITTEN},
	[OUT_HTML] = {NAME("--html", files.html), .kind = OUT_FINAL, .what = "page",
		      .fallback = "page", .announce = WRITTEN},
	[OUT_EVENTS] = {NAME("--events", files.events), .kind = OUT_STREAM},
	[OUT_LOG] = {NAME("--log-file", messages.log_file), .kind = OUT_OWN},
	[OUT_LIMITS] = {NAME("--limits-out", files.limits_out), .kind = OUT_OWN,
			.is_repeatable = true,
			.what = "result of the limits", .fallback = "limits"},
};

static bool is_wanted(const struct options *o, enum output which)
{
	switch (which) {
	case OUT_MASSIF:
		return options_write_massif(o);
	case OUT_XTREE:
		return o->files.xtree_mode != XTREE_NONE;
	case OUT_LEAKS:
		return options_report_leaks(o);
	case OUT_INSPECT:
		return o->inspect.what || o->inspect.at_exit || o->when.count;
	case OUT_GRAPH:
		return o->graph.what;
	case OUT_MEMUSAGE:
		return o->memusage.count;
	case OUT_SAMPLES:
		return o->samples.ms;
	default: /* the name alone enables it */
		return true;
	}
}

const char *out_pattern_at(const struct options *o, enum output which, size_t i)
{
	const void *field = (const char *)o + out_rows[which].pattern;
	const struct option_strings *strings = field;
	const char *pattern = !out_rows[which].is_repeatable ? *(const char *const *)field :
			      i < strings->count	     ? strings->data[i] :
							       NULL;

	return is_wanted(o, which) && (i == 0 || out_rows[which].is_repeatable) ? pattern : NULL;
}

const char *out_pattern(const struct options *o, enum output which)
{
	return out_pattern_at(o, which, 0);
}

/* -- names -- */

/* The length of @path without its extension; that of pprof's files has two parts. */
static size_t stem_size(const char *path)
{
	static const char pprof[] = ".pb.gz";

	if (text_ends_in(path, pprof))
		return strlen(path) - (sizeof(pprof) - 1);
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	const char *name = slash ? slash + 1 : path;
	bool has_extension = dot && dot > name && dot[1] && dot[1 + strspn(dot + 1, "0123456789")];

	return has_extension ? (size_t)(dot - path) : strlen(path);
}

bool file_name_is_shared(const char *path)
{
	struct stat st;

	return strcmp(path, "-") == 0 ||
	       (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

char *file_name_insert(const char *path, const struct file_name_parts *parts)
{
	char *text = NULL;
	size_t size, stem = stem_size(path);

	if (file_name_is_shared(path))
		return xstrdup(path);
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	fwrite(path, 1, stem, f);
	if (parts->source)
		fprintf(f, ".%s", parts->source);
	if (parts->pid)
		fprintf(f, ".%u", parts->pid);
	if (parts->part)
		fprintf(f, ".%03u", parts->part);
	if (parts->number)
		fprintf(f, ".%u", parts->number);
	fputs(path + stem, f);
	CHECK(fclose(f) == 0);
	return text;
}

bool file_name_has(const char *pattern, const char *letters)
{
	for (const char *s = strchr(pattern, '%'); s && s[1]; s = strchr(s + 2, '%')) {
		if (strchr(letters, s[1]))
			return true;
	}
	return false;
}

/* The part of a name for a source; NULL = none. */
static const char *source_part(const struct options *o, const struct out_name *n)
{
	uint32_t traced = options_sources(o);
	bool is_one = n->which == OUT_MASSIF ? n->source == SOURCE_HEAP : !(traced & (traced - 1));

	return is_one || !out_rows[n->which].has_sources ? NULL :
							   memory_source_info[n->source].name;
}

int out_path(struct run *run, const struct out_name *n, char **path_out)
{
	_cleanup_free_ char *why = NULL, *path = NULL;
	const char *pattern = n->pattern ? n->pattern : out_pattern(run->options, n->which);
	bool is_numbered = file_name_has(pattern, "n");
	/* parts of several processes have the same numbers */
	bool has_own_name = file_name_has(pattern, n->part ? "p" : "pn");
	const struct file_name_parts parts = {
		.source = source_part(run->options, n),
		.pid = n->needs_pid && !has_own_name ? n->pid : 0,
		.number = is_numbered && !n->part ? 0 : n->number,
		.part = is_numbered ? 0 : n->part,
	};
	const struct pattern_values values = {.pid = n->pid, .part = n->part,
					      .sequence = &run->sequence, .dir = run->directory};
	int rc = pattern_expand(pattern, &values, &path, &why);

	if (rc != 0)
		log_error("%s: %s", out_rows[n->which].option, why);
	else
		*path_out = file_name_insert(path, &parts);
	return rc;
}

static struct out_name name_of(const struct session *s, enum output which,
			       enum memory_source_kind source)
{
	const struct run *run = s->run;
	uint32_t first = out_rows[which].is_of_counted ? run->first_counted : run->first_pid;

	return (struct out_name){
		.which = which, .source = source, .pid = s->process.pid,
		.needs_pid = options_attach_many(run->options) ||
			     (first && first != s->process.pid)};
}

static unsigned own_number(struct session *s)
{
	if (!s->image.has_next && !s->process.has_reused_pid)
		return 0;
	if (!s->process.file_number)
		s->process.file_number = ++run_process(s->run, s->process.pid)->numbers;
	return s->process.file_number;
}

/* The existing file is that of the previous program: it gets the number of that program's files. */
static void rename_previous(struct process_files *p, const char *path)
{
	if (!p->last_number)
		p->last_number = ++p->numbers;
	const struct file_name_parts parts = {.number = p->last_number};
	_cleanup_free_ char *moved = file_name_insert(path, &parts);

	if (rename(path, moved) == 0)
		log_verbose("%s, of the previous program, is now %s", path, moved);
}

static int name_for(struct session *s, enum output which, enum memory_source_kind source,
		    char **path_out)
{
	struct out_name name = name_of(s, which, source);

	name.number = own_number(s);
	return out_path(s->run, &name, path_out);
}

int out_session_path(struct session *s, enum output which, char **path_out)
{
	struct process_files *p = run_process(s->run, s->process.pid);
	bool has_predecessor = p->streams & 1u << which;
	int rc = name_for(s, which, SOURCE_HEAP, path_out);

	if (rc != 0)
		return rc;
	p->streams |= 1u << which;
	if (has_predecessor && !file_name_is_shared(*path_out) &&
	    !file_name_has(out_pattern(s->run->options, which), "n"))
		rename_previous(p, *path_out);
	return 0;
}

int out_numbered_path(struct session *s, enum output which, enum memory_source_kind source,
		      unsigned number, char **path_out)
{
	struct out_name name = name_of(s, which, source);
	_cleanup_free_ char *pattern = xasprintf("%s.%%p", out_rows[which].fallback);

	name.number = number;
	if (which == OUT_RECORD)
		name.part = s->recording->span.part;
	if (!out_pattern(s->run->options, which))
		name.pattern = pattern;
	int rc = out_path(s->run, &name, path_out);

	if (rc != 0 || !number || !file_name_is_shared(*path_out))
		return rc;
	free(*path_out);
	name.pattern = pattern;
	return out_path(s->run, &name, path_out);
}

void out_begin(struct session *s)
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

void out_end(struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);

	if (s->process.has_ended)
		return;
	s->process.has_ended = true;
	p->images += s->image.has_next;
	p->last_number = s->process.file_number;
	p->has_ended = !s->image.has_next;
}

#define NAMES_BEFORE 8u /* are listed; a loop may execute thousands */

void out_list_name(char **list, unsigned *count, const char *name)
{
	_cleanup_free_ char *old = *list, *clean = text_clean(name, strlen(name));

	if (!old)
		*list = xstrdup(clean);
	else if (*count < NAMES_BEFORE)
		*list = xasprintf("%s, %s", old, clean);
	else if (*count == NAMES_BEFORE)
		*list = xasprintf("%s, ...", old);
	else
		old = NULL;
	++*count;
}

void out_supersede(struct session *s)
{
	struct process_files *p = run_process(s->run, s->process.pid);
	_cleanup_free_ char *name = session_program_name(s);

	p->streams = 0; /* their files are overwritten */
	p->before_peak = MAX(p->before_peak, profile_totals(s->heap.profile)->peak_bytes);
	out_list_name(&p->before, &p->before_count, name);
	if (s->image.passed)
		out_list_name(&p->before, &p->before_count, s->image.passed);
}

/* -- writing -- */

/* The places to try, in this order; NULL or relative: none. */
enum { PLACES = 4 };

static const char *place(size_t i)
{
	static const char *const fixed[PLACES] = {NULL, "/tmp", "/var/tmp", "/dev/shm"};
	const char *path = i ? fixed[i] : getenv("TMPDIR");

	return path && path[0] == '/' ? path : NULL;
}

/* No other user can have put anything there. */
static bool is_own_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

static bool make_directory(char *path, bool is_named)
{
	if (!is_named)
		return mkdtemp(path);
	return mkdir(path, 0700) == 0 || is_own_directory(path);
}

static char *join_fallback(const char *directory, enum output which, uint32_t pid,
			   const struct out_content *c)
{
	return xasprintf("%s/%s.%u%s", directory, out_rows[which].fallback, pid,
			 c->end ? c->end : "");
}

/*
 * Uses a directory of its own, called c->directory or, if that is NULL, a new one, so that no link
 * of another user can interfere. Returns the path, which the caller frees; NULL = this failed, too.
 */
static char *put_elsewhere(enum output which, uint32_t pid, const struct out_content *c)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (!place(i))
			continue;
		_cleanup_free_ char *directory = xasprintf(
			"%s/%s", place(i), c->directory ? c->directory : "ptmem-XXXXXX");
		if (!make_directory(directory, c->directory))
			continue;
		char *path = join_fallback(directory, which, pid, c);
		if (outfile_put(path, c->put, c->ctx) == 0)
			return path;
		free(path);
		rmdir(directory);
	}
	return NULL;
}

int out_put(enum output which, uint32_t pid, const char *path, const struct out_content *c)
{
	bool is_taken = c->directory && file_name_is_shared(path);
	int rc = is_taken ? -EEXIST : outfile_put(path, c->put, c->ctx);

	if (rc == 0)
		return 0;
	_cleanup_free_ char *elsewhere = put_elsewhere(which, pid, c);
	const char *name = strcmp(path, "-") == 0 ? "standard output" : path;
	const char *what = out_rows[which].what;

	if (elsewhere && c->directory)
		log_verbose("cannot write %s: %s; the %s is in %s", name, strerror(-rc), what,
			    elsewhere);
	else if (elsewhere)
		log_error("cannot write %s: %s; the %s is in %s", name, strerror(-rc), what,
			  elsewhere);
	else
		log_error("cannot write %s: %s; the %s cannot be written elsewhere either", name,
			  strerror(-rc), what);
	return rc;
}

char *out_directory_name(void)
{
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return xasprintf("ptmem-%d-%08llx", (int)getpid(),
			 (unsigned long long)random & 0xffffffff);
}

char *out_find(enum output which, uint32_t pid, const struct out_content *c)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (!place(i))
			continue;
		_cleanup_free_ char *there = xasprintf("%s/%s", place(i), c->directory);
		char *path = join_fallback(there, which, pid, c);

		if (is_own_directory(there) && access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

void out_remove(const char *path)
{
	_cleanup_free_ char *directory = xstrndup(path, (size_t)(strrchr(path, '/') - path));

	unlink(path);
	rmdir(directory); /* fails unless it is empty */
}

/* -- the files of a session -- */

/*
 * An earlier run in the same directory may have attached to the same process: its profile is
 * renamed, with the first free number, and not as a snapshot of it is called.
 */
static void keep_earlier(const struct session *s, const char *path)
{
	const struct options *o = s->run->options;

	if (!options_attach(o) || !file_name_has(o->files.massif, "p") ||
	    file_name_is_shared(path))
		return;
	struct file_name_parts parts = {.source = "earlier", .number = 1};

	for (; parts.number < 10000; parts.number++) {
		_cleanup_free_ char *moved = file_name_insert(path, &parts);
		if (renameat2(AT_FDCWD, path, AT_FDCWD, moved, RENAME_NOREPLACE) == 0)
			log_info("%s, of an earlier ptmem, is now %s", path, moved);
		else if (errno == EEXIST)
			continue;
		return;
	}
}

int out_name(struct session *s, enum output which, enum memory_source_kind source,
	     const char **path_out)
{
	char **path = &s->end.path[which][source], *decided;

	if (!*path || out_rows[which].kind == OUT_EACH) {
		int rc = name_for(s, which, source, &decided);

		s->run->files_failed += rc != 0;
		if (rc != 0)
			return rc;
		free(*path);
		*path = decided;
		if (which == OUT_MASSIF)
			keep_earlier(s, decided);
	}
	*path_out = *path;
	return 0;
}

void out_note(struct run *run, enum output which, const char *path)
{
	if (!run->summaries.file[which].count++)
		run->summaries.file[which].first = xstrdup(path);
}

void out_announce(const struct session *s, enum output which, const char *path)
{
	bool is_shared = file_name_is_shared(path), has_reader = which == OUT_RECORD && !is_shared;

	if (session_is_silent(s) || !out_rows[which].announce)
		return;
	if (!is_shared)
		out_note(s->run, which, path);
	log_info("%s%s%s%s", out_rows[which].announce,
		 strcmp(path, "-") == 0 ? "standard output" : path,
		 has_reader ? "; read it with: ptmem-report " : "", has_reader ? path : "");
}

int out_write(struct session *s, enum output which, enum memory_source_kind source,
	      const struct out_content *c, const char **path_out)
{
	const char *path = s->end.path[which][source];
	int rc = path ? 0 : out_name(s, which, source, &path);

	if (rc != 0)
		return rc;
	if (path_out)
		*path_out = path;
	if (!s->end.is_draft)
		rc = out_put(which, s->process.pid, path, c);
	else if (!file_name_is_shared(path))
		outfile_put(path, c->put, c->ctx); /* if it fails, so will the next time */
	s->run->files_failed += rc != 0;
	if (rc == 0 && !s->end.is_draft)
		out_announce(s, which, path);
	return rc;
}
