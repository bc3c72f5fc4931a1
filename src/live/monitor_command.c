/*
 * The commands. A new one needs a row of the table and a function that writes its answer to
 * r->reply. A word may be abbreviated if it is unique: among all commands for a user, among
 * Massif's for a client request of the program.
 */
#include "live/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/proc.h"
#include "output/outfile.h"
#include "session/inspect/inspect_session.h"
#include "session/inspect/leak_report.h"
#include "session/record/recording_now.h"
#include "session/record/recording_values.h"
#include "session/run.h"
#include "session/session.h"
#include "session/out.h"
#include "session/session_output.h"

struct command {
	const char *name;
	bool is_massif;   /* Massif has it, too */
	bool needs_program;
	int (*run)(struct monitor_request *r);
	const char *arguments, *text;
};

static char *file_path(const struct monitor_request *r, const char *name)
{
	return *name == '/' ? xstrdup(name) : xasprintf("%s/%s", r->directory, name);
}

/* 0 if @path may be written: it is neither an input of the run nor one of its output files. */
static int check_free(const struct monitor_request *r, const char *path)
{
	const char *use = out_find_use(r->run, path);
	if (!use)
		return 0;
	fprintf(r->reply, "cannot write %s: it is the file of %s\n", path, use);
	return -EBUSY;
}

static int answer_file(struct monitor_request *r, int rc, const char *what, const char *path)
{
	if (rc == 0)
		fprintf(r->reply, "%s written to %s\n", what, path);
	else
		fprintf(r->reply, "cannot write %s: %s\n", path, strerror(-rc));
	return rc;
}

static int write_snapshot(struct monitor_request *r, enum snapshot_kind kind)
{
	_cleanup_free_ char *path = file_path(r, r->file ? r->file : "massif.vgdb.out");
	int rc = check_free(r, path);
	if (rc != 0)
		return rc;
	rc = session_output_now(r->session, path, kind, clock_now_ns());
	return answer_file(r, rc, "snapshot", path);
}

static int run_snapshot(struct monitor_request *r)
{
	return write_snapshot(r, SNAPSHOT_EMPTY);
}

static int run_detailed_snapshot(struct monitor_request *r)
{
	return write_snapshot(r, SNAPSHOT_DETAILED);
}

static int run_all_snapshots(struct monitor_request *r)
{
	_cleanup_free_ char *path = file_path(r, r->file ? r->file : "massif.vgdb.out");
	int rc = check_free(r, path);
	if (rc != 0)
		return rc;
	return answer_file(r, session_output_massif(r->session, path), "all snapshots", path);
}

static int run_xtmemory(struct monitor_request *r)
{
	_cleanup_free_ char *path = NULL, *why = NULL;
	struct run *run = r->run;
	struct pattern_values values = {.pid = r->session->process.pid,
					.sequence = &run->sequence,
					.dir = run->directory};
	int rc = pattern_expand(r->file ? r->file : "xtmemory.kcg.%p.%n", &values, &path, &why);
	if (rc != 0) {
		fprintf(r->reply, "%s\n", why);
		return rc;
	}
	rc = check_free(r, path);
	if (rc != 0)
		return rc;
	rc = session_output_xtree(r->session, path, clock_now_ns());
	return answer_file(r, rc, "xtree memory report", path);
}

static void answer_recording(void *ctx, int rc)
{
	struct monitor_request *r = ctx;

	answer_file(r, rc, "recording", r->path);
	r->answer(r->answer_ctx, rc);
}

/* The copy answers when it has written the file: ptmem goes on meanwhile. */
static int run_recording(struct monitor_request *r)
{
	_cleanup_free_ char *name = xasprintf("recording.%" PRIu32, r->session->process.pid);
	_cleanup_free_ char *path = file_path(r, r->file ? r->file : name);
	struct recording_now now = {.session = r->session, .path = path,
					  .answer = answer_recording, .ctx = r,
					  .socket = r->client};
	int rc = check_free(r, path);

	if (rc != 0)
		return rc;
	if (!r->session->recording || !r->session->space) {
		fputs("recording needs a ptmem that was started with --record, --html or "
		      "--listen\n", r->reply);
		return -ENOTSUP;
	}
	r->path = path;
	rc = recording_now_start(&now);
	if (rc != 0)
		return answer_file(r, rc, "recording", path);
	r->is_deferred = true;
	return 0;
}

static int run_leaks(struct monitor_request *r)
{
	_cleanup_free_ char *path = r->file ? file_path(r, r->file) : NULL;
	int rc = path ? check_free(r, path) : 0;
	if (rc != 0)
		return rc;
	rc = leak_report_write(r->session, path, r->reply);
	if (rc == -ENOTSUP)
		fputs("leaks needs a ptmem that was started with --leaks or --leak-check\n",
		      r->reply);
	else if (rc == -ESRCH)
		fputs("the process has ended\n", r->reply);
	else if (path)
		return answer_file(r, rc, "leaks", path);
	return rc;
}

static int run_inspect(struct monitor_request *r)
{
	_cleanup_free_ char *path = r->file ? file_path(r, r->file) : NULL;
	int rc = path ? check_free(r, path) : 0;

	if (rc != 0)
		return rc;
	rc = inspect_session_write(r->session, path, r->reply);
	return path && rc != -ESRCH && rc != -ENOTSUP ? answer_file(r, rc, "inspection", path) : rc;
}

static int run_inspect_check(struct monitor_request *r)
{
	return inspect_session_check(r->session, r->reply);
}

/* "live bytes: 1234", with the standard error of an estimate. */
static void print_bytes(FILE *reply, const struct profile *p, const char *what, uint64_t bytes,
			uint64_t variance)
{
	char error[AMOUNT_SIZE] = "";

	if (profile_options(p)->sample_interval)
		amount_error((double)bytes, profile_error(p, variance), error);
	fprintf(reply, "%s: %" PRIu64 "%s\n", what, bytes, error);
}

/* Pads count every call, sampled or not. */
static void print_calls(FILE *reply, const struct session *s)
{
	const struct profile_totals *p = profile_totals(s->heap.profile);
	const struct call_totals calls = recording_calls_now(s);
	const struct call_sums sums = call_totals_sums(&calls);
	bool is_sampled = s->heap.sample.interval;

	fprintf(reply, "allocations: %" PRIu64 "\n",
		is_sampled ? sums.allocations : profile_count(s->heap.profile, p->allocations));
	fprintf(reply, "reallocations: %" PRIu64 "\n",
		is_sampled ? calls.function[FUNCTION_REALLOC].calls : p->reallocations);
	fprintf(reply, "frees: %" PRIu64 "\n",
		is_sampled ? sums.frees : profile_count(s->heap.profile, p->frees));
}

static int run_status(struct monitor_request *r)
{
	const struct session *s = r->session;
	const struct profile_totals *p = profile_totals(s->heap.profile);
	fprintf(r->reply, "process %" PRIu32 ", %s\n", s->process.pid, s->process.command);
	fprintf(r->reply, "profiled for %.2f s\n",
		(double)(clock_now_ns() - s->process.start_ns) / 1e9);
	print_calls(r->reply, s);
	print_bytes(r->reply, s->heap.profile, "live bytes", p->live_bytes, p->live_variance);
	fprintf(r->reply, "live blocks: %" PRIu64 "\n",
		profile_count(s->heap.profile, p->live_blocks));
	print_bytes(r->reply, s->heap.profile, "peak bytes", p->peak_bytes, p->peak_variance);
	if (s->heap.sample.interval)
		fprintf(r->reply, "samples: %" PRIu64 " (live and peak are estimates, the peak "
			"the highest of them; calls are %s)\n", p->samples,
			call_totals_trust(recording_calls_now(s).is_doubtful));
	fprintf(r->reply, "snapshots: %" PRIu32 "\n", profile_snapshot_count(s->heap.profile));
	fprintf(r->reply, "processes: %zu\n", r->run->sessions.count);
	return 0;
}

static int run_detach(struct monitor_request *r)
{
	r->wants_detach = true;
	fputs("detaching\n", r->reply);
	return 0;
}

static int run_help(struct monitor_request *r);

static const struct command commands[] = {
	{"snapshot", true, true, run_snapshot, "[FILE]",
	 "the sizes now, to FILE [massif.vgdb.out]"},
	{"detailed_snapshot", true, true, run_detailed_snapshot, "[FILE]",
	 "the same with a call tree"},
	{"all_snapshots", true, true, run_all_snapshots, "[FILE]", "the profile so far"},
	{"xtmemory", true, true, run_xtmemory, "[FILE]",
	 "memory by call path [xtmemory.kcg.%p.%n]"},
	{"recording", false, true, run_recording, "[FILE]",
	 "the recording so far, to FILE [recording.PID] (--record)"},
	{"leaks", false, true, run_leaks, "[FILE]",
	 "which blocks are there, by call path (--leaks)"},
	{"inspect", false, true, run_inspect, "[FILE]",
	 "what resident memory consists of; JSON if FILE ends in .json"},
	{"inspect_check", false, true, run_inspect_check, "",
	 "whether malloc's heaps hold the blocks that were counted"},
	{"status", false, true, run_status, "", "what was counted so far"},
	{"detach", false, false, run_detach, "", "end the profile and leave the program running"},
	{"help", false, false, run_help, "", "this list"},
};

static int run_help(struct monitor_request *r)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(r->reply, "  %-17s %-7s %s\n", commands[i].name, commands[i].arguments,
			commands[i].text);
	return 0;
}

/* The only command that is, or begins with, @word, among Massif's only or among all. */
static const struct command *find_prefix(const char *word, size_t length, bool is_massif,
					 bool *is_ambiguous)
{
	const struct command *found = NULL;
	*is_ambiguous = false;
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];
		if (strncmp(c->name, word, length) != 0 || (is_massif && !c->is_massif))
			continue;
		if (strlen(c->name) == length)
			return c;
		*is_ambiguous |= found != NULL;
		found = c;
	}
	return *is_ambiguous ? NULL : found;
}

/* "unknown command 'z'", or which ones 's' may be. */
static void print_unknown(FILE *file, const char *word, int length, bool is_ambiguous)
{
	const char *between = "";
	fprintf(file, "%s command '%.*s'", is_ambiguous ? "ambiguous" : "unknown", length, word);
	for (size_t i = 0; i < ARRAY_SIZE(commands) && is_ambiguous; i++) {
		if (strncmp(commands[i].name, word, (size_t)length) != 0)
			continue;
		fprintf(file, "%s%s", *between ? between : ": ", commands[i].name);
		between = " or ";
	}
	fputs("; help lists all\n", file);
}

static int run_command(struct monitor_request *r, const struct command *c, const char *rest)
{
	if (c->needs_program && !r->session) {
		fputs("cannot take snapshot before execution has started\n", r->reply);
		return -ESRCH;
	}
	_cleanup_free_ char *file = xstrdup(rest + strspn(rest, " \t\n"));
	file[strcspn(file, "\n")] = '\0';
	r->file = *file ? file : NULL;
	int rc = c->run(r);
	r->file = NULL;
	return rc;
}

bool monitor_command_run_from_program(struct session *s, const char *line)
{
	bool is_ambiguous = false;
	line += strspn(line, " \t\n");
	size_t length = strcspn(line, " \t\n");
	const struct command *c = length ? find_prefix(line, length, true, &is_ambiguous) : NULL;
	if (!c && length && strncmp("help", line, length) == 0)
		c = find_prefix("help", strlen("help"), false, &is_ambiguous);
	if (!c)
		return false;
	pid_t reader = proc_find_reader((pid_t)s->process.pid);
	if (c->is_massif && !proc_has_our_rights(reader)) {
		log_error("process %" PRIu32 " requests %s, which would write a file with rights "
			  "that it does not have itself: refused; use --monitor", s->process.pid,
			  c->name);
		return true;
	}
	_cleanup_free_ char *directory = proc_read_link(reader, "cwd");
	_cleanup_free_ char *text = NULL;
	size_t size;
	struct monitor_request r = {
		.run = s->run, .session = s, .directory = directory ? directory : s->run->directory,
		.reply = open_memstream(&text, &size), .client = -1,
	};
	CHECK(r.reply);
	int rc = run_command(&r, c, line + length);
	fclose(r.reply);
	log_print_lines(rc == 0 ? LOG_INFO : LOG_ERROR, "", text);
	return true;
}

int monitor_command_run(struct monitor_request *r, const char *line)
{
	line += strspn(line, " \t\n");
	size_t length = strcspn(line, " \t\n");
	bool is_ambiguous = false;
	const struct command *c = length ? find_prefix(line, length, false, &is_ambiguous) : NULL;
	if (!c) {
		print_unknown(r->reply, line, (int)length, is_ambiguous);
		return -EINVAL;
	}
	return run_command(r, c, line + length);
}
