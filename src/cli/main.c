/*
 * ptmem: the command. Reads the options, opens the log, starts or attaches, runs the loop, and
 * exits as its program did. The only file that exits.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/own_process.h"
#include "base/proc.h"
#include "cli/command_line.h"
#include "cli/explain.h"
#include "live/budget.h"
#include "live/follow.h"
#include "live/live.h"
#include "live/monitor.h"
#include "live/rss_poll.h"
#include "live/top.h"
#include "output/outfile.h"
#include "session/labels.h"
#include "session/limits.h"
#include "session/inspect/cold_watch.h"
#include "session/inspect/earlier_blocks.h"
#include "session/inspect/inspect_command.h"
#include "session/inspect/leak_report.h"
#include "session/memory_source.h"
#include "session/memusage_run.h"
#include "session/observer.h"
#include "session/options.h"
#include "session/record/recording_now.h"
#include "session/out.h"
#include "session/repeat.h"
#include "session/run.h"
#include "session/session.h"
#include "session/session_output.h"
#include "session/signals.h"
#include "tracee/control/attach.h"
#include "tracee/control/job.h"
#include "tracee/control/left_children.h"
#include "tracee/control/target.h"
#include "tracee/os/cpu_counters.h"

/*
 * The log is opened before the program starts, and the program does not inherit
 * it. Its name may contain %p (ptmem's own process id), %q{VAR} and %%.
 */

static int open_log(const char *pattern)
{
	_cleanup_free_ char *path = NULL, *why = NULL;
	uint32_t sequence = 0;
	struct pattern_values values = {.pid = (uint32_t)getpid(), .sequence = &sequence};
	if (pattern_expand(pattern, &values, &path, &why) != 0) {
		log_error("--log-file: %s", why);
		return -EINVAL;
	}
	int fd = stream_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	int err = MIN(fd, 0);
	if (err)
		log_error("cannot create log file %s: %s", path, strerror(-err));
	else
		log_set_fd(fd);
	return err;
}

/* Directs messages to the log of @o. 0, or -errno after a message on standard error. */
static int log_file_open(const struct options *o)
{
	if (o->messages.log_file)
		return open_log(o->messages.log_file);
	int fd = (int)o->messages.log_fd;
	if (fd == STDERR_FILENO)
		return 0;
	if (fcntl(fd, F_GETFD) < 0) {
		log_error("--log-fd=%d: %s", fd, strerror(errno));
		return -EBADF;
	}
	log_set_fd(fd);
	return 0;
}

/*
 * ptmem: the command. Reads the options, starts or attaches, runs the loop, and exits as its
 * program did. The only file that exits.
 */

enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/*
 * Exceeding RLIMIT_FSIZE and writing to a pipe without a reader are write errors like others; even
 * the first message may cause them. The outputs are the original signal actions.
 */
static void ignore_write_signals(struct sigaction *file_out, struct sigaction *pipe_out)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGXFSZ, &ignore, file_out);
	sigaction(SIGPIPE, &ignore, pipe_out);
}

static void catch_signals(const struct options *o)
{
	signals_catch_leave(options_attach(o));
	if (options_report_on_signal(o))
		signals_catch_report();
}

/* Called between events. */
static bool should_leave(void *ctx)
{
	struct run *run = ctx;
	const struct observer *o;
	bool wants_to_leave = false;

	observers_each(o, run, poll)
		wants_to_leave |= o->poll(o->ctx);
	/* read once: what comes while reports are made is a reason to make them again */
	bool is_asked = signals_leave_request() != 0;

	reports_poll(run, wants_to_leave || is_asked);
	/* ptmem may wait for a started program: signals must continue to wake it up */
	if (is_asked || (wants_to_leave && options_attach(run->options)))
		signals_stop_waking();
	return wants_to_leave || is_asked;
}

static char *join_command(char *const argv[])
{
	size_t size = 1;
	for (char *const *a = argv; *a; a++)
		size += strlen(*a) + 1;
	char *text = xmalloc(size), *p = text;
	for (char *const *a = argv; *a; a++) {
		if (a != argv)
			*p++ = ' ';
		p = stpcpy(p, *a);
	}
	*p = '\0';
	for (p = text; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	return text;
}

/* -- start -- */

/* --time-unit=i: fails before the program starts. */
static int check_instructions(const struct options *o)
{
	bool counts = o->profile.time_unit == TIME_INSTRUCTIONS && !o->files.replay;
	int rc = counts ? instructions_check() : 0;
	if (rc != 0)
		explain_instructions(rc);
	return rc;
}

static int start_program(struct run *run)
{
	char **argv = run->options->command;
	int rc = target_start(run->target, argv);
	if (rc == 0)
		return 0;
	if (target_fault_error(run->target) != 0) {
		explain_faults(target_fault_error(run->target));
		return EXIT_OWN_FAILURE;
	}
	explain_start(argv[0], rc);
	switch (rc) {
	case -ENOENT:
	case -ENOTDIR:
		return EXIT_NOT_FOUND;
	case -EACCES:
	case -ENOEXEC:
	case -EISDIR:
	case -ELOOP:
	case -E2BIG:
	case -ETXTBSY:
		return EXIT_NOT_EXECUTABLE;
	}
	return EXIT_OWN_FAILURE;
}

/* The id that process @pid has in a pid namespace of its own, as a part of a message. */
static const char *ns_pid_text(pid_t pid, char *text, size_t size)
{
	struct proc_status st;
	*text = '\0';
	if (proc_status_read(pid, &st) == 0 && st.ns_pid)
		snprintf(text, size, ", %d in its pid namespace", (int)st.ns_pid);
	return text;
}

/* @threads: the number of traced threads before. */
static void report_attached(const struct target *t, pid_t pid, uint64_t threads)
{
	char text[64];
	threads = target_stats(t)->threads - threads;
	log_info("attached to process %d%s (%llu thread%s paused for %.1f ms)", pid,
		 ns_pid_text(pid, text, sizeof(text)), (unsigned long long)threads,
		 plural(threads), (double)target_stats(t)->attach_ns / 1e6);
}

static int attach_all(struct run *run)
{
	unsigned attached = 0;
	for (uint32_t i = 0; i < run->options->attach.pid_count; i++) {
		enum attach_problem problem = ATTACH_OTHER;
		long detail = -1;
		pid_t pid = run->options->attach.pid[i];
		uint64_t threads = target_stats(run->target)->threads;
		int rc = target_attach(run->target, pid, &problem, &detail);
		if (rc != 0) {
			explain_attach(pid, rc, problem, detail);
			continue;
		}
		attached++;
		report_attached(run->target, pid, threads);
	}
	return attached > 0 || run->options->attach.follow.count > 0 ? 0 : EXIT_OWN_FAILURE;
}

/* -- end -- */

static void detach_after_check(void *target)
{
	target_abandon(target);
}

/* The program's wait status; waits for it if the program continues without ptmem. */
static bool await_program(struct run *run, struct rss_poll *rss_poll, int *status)
{
	pid_t pid = target_first_pid(run->target);
	if (!target_exit_status(run->target, status))
		rss_poll_watch(rss_poll, &pid, 1, should_leave, run);
	while (!target_exit_status(run->target, status)) {
		pid_t got = waitpid(pid, status, __WALL | WUNTRACED);
		if (got == pid && !WIFSTOPPED(*status))
			return true;
		if (got == pid)
			job_stop_self(WSTOPSIG(*status));
		if (got < 0 && errno != EINTR)
			return false;
		if (signals_leave_request()) {
			signals_stop_waking();
			return false;
		}
	}
	return true;
}

ATTR_NORETURN static void die_of(int sig)
{
	const struct rlimit no_core = {0, 0};
	sigset_t set;
	setrlimit(RLIMIT_CORE, &no_core); /* only the program's core dump is of interest */
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	_exit(128 + sig);
}

static int finish_started(struct run *run, struct rss_poll *rss_poll, int *signal_out)
{
	int status = 0;
	enum attach_problem problem = target_refusal(run->target);
	if (problem != ATTACH_OK) {
		await_program(run, rss_poll, &status);
		explain_refusal(run->options->command[0], problem);
		return EXIT_OWN_FAILURE;
	}
	if (signals_leave_request() && signals_leave_request() != SIGALRM) {
		*signal_out = signals_leave_request();
		return 0;
	}
	if (run->must_end)
		return 0;
	if (!await_program(run, rss_poll, &status)) {
		*signal_out = signals_leave_request();
		return EXIT_OWN_FAILURE;
	}
	if (WIFSIGNALED(status)) {
		*signal_out = WTERMSIG(status);
		return 128 + *signal_out;
	}
	return WEXITSTATUS(status);
}

static void leave_program(struct target *target)
{
	bool stays = target_must_stay(target), is_one = target_process_count(target) == 1;
	if (stays)
		log_info("the profile ends; the program%s on, and ptmem with %s, since %s calls of "
			 "brk and mmap stop for ptmem",
			 is_one ? " runs" : "s run", is_one ? "it" : "them",
			 is_one ? "its" : "their");
	target_detach(target);
	if (!stays)
		log_info("detached (paused for %.1f ms); the program%s on",
			 (double)target_stats(target)->detach_ns / 1e6, is_one ? " runs" : "s run");
}

/* The loop, with the live components around it. */
static void run_loop(struct run *run, struct listen *listen)
{
	const struct follow_messages messages = {report_attached, explain_attach};
	struct follow *follow = follow_start(run, &messages);
	struct budget_run *budget = budget_start(run);
	struct monitor *monitor = monitor_open(run);
	struct top *top = top_start(run);

	listen_begin(listen);
	cold_watch_start(run);
	target_run(run->target);
	listen_leave(listen);
	follow_stop(follow);
	budget_stop(budget);
	top_stop(top);
	monitor_stop(monitor);
	if (target_process_count(run->target) > 0)
		leave_program(run->target);
	left_children_report(run->target, run->most_resident);
	listen_close(listen);
	monitor_close(monitor);
}

static int run_target(struct run *run, struct rss_poll *rss_poll, int *signal_out)
{
	const struct options *o = run->options;
	struct event_sink sink;
	struct target_options to;
	struct listen *listen = NULL;
	struct triggers *triggers = NULL;
	int rc;

	if (triggers_open(run, &triggers) != 0 || listen_open(run, &listen) != 0) {
		triggers_close(triggers);
		return EXIT_OWN_FAILURE;
	}
	session_sink_init(&sink, run, should_leave);
	tracee_options_init(&to, run);
	run->target = target_new(&to, &sink, &run->registry);
	log_set_check_hook(detach_after_check, run->target);
	if (options_attach(o)) {
		catch_signals(o);
		rc = attach_all(run);
		signals_start_duration(o->attach.duration);
	} else {
		rc = start_program(run);
		catch_signals(o);
	}
	if (rc == 0) {
		run_loop(run, listen);
		rc = options_attach(o) ? 0 : finish_started(run, rss_poll, signal_out);
	} else {
		listen_close(listen);
	}
	log_set_check_hook(NULL, NULL);
	triggers_close(triggers);
	memory_sources_print_lost(run);
	target_free(run->target);
	earlier_blocks_free(run->earlier);
	return rc;
}

/* Inspects running processes, or a core file, without profiling. */
static int inspect_all(struct run *run)
{
	const struct options *o = run->options;
	const char *core = options_core(o), *program = core && o->command ? *o->command : NULL;
	int status = 0;

	if (core && inspect_core(run, core, program) != 0)
		status = EXIT_OWN_FAILURE;
	for (uint32_t i = 0; i < o->attach.pid_count; i++) {
		enum attach_problem problem = ATTACH_OK;
		long detail = -1;
		int rc = inspect_process(run, o->attach.pid[i], &problem, &detail);

		if (rc != 0 && problem != ATTACH_OK)
			explain_attach(o->attach.pid[i], rc, problem, detail);
		if (rc != 0)
			status = EXIT_OWN_FAILURE;
	}
	return status;
}

/* Only samples running processes, without tracing. */
static int watch_processes(struct run *run, struct rss_poll *rss_poll)
{
	const struct options *o = run->options;
	pid_t *pids = xcalloc(o->attach.pid_count, sizeof(*pids));
	size_t count = 0;
	for (uint32_t i = 0; i < o->attach.pid_count; i++) {
		enum attach_problem problem = o->attach.pid[i] == getpid() ?
						      ATTACH_SELF :
						      target_check_pid(o->attach.pid[i]);
		if (problem == ATTACH_OK)
			pids[count++] = o->attach.pid[i];
		else
			explain_attach(o->attach.pid[i], 0, problem, 0);
	}
	catch_signals(o);
	signals_start_duration(o->attach.duration);
	rss_poll_watch(rss_poll, pids, count, should_leave, run);
	free(pids);
	return count > 0 ? 0 : EXIT_OWN_FAILURE;
}

/*
 * Opening a FIFO waits for its reader, so it is done before the program starts. Sessions open
 * files.
 */
static int open_events(struct run *run)
{
	const char *path = run->options->files.events;
	if (!path || !file_name_is_shared(path))
		return 0;
	run->events_file = stream_create(path);
	if (run->events_file)
		return 0;
	log_error("cannot write %s: %s", path, strerror(errno));
	return -EIO;
}

static int profile(struct run *run, struct rss_poll *rss_poll, int *signal_out)
{
	const struct options *o = run->options;

	if (o->files.replay)
		return session_replay(run, o->files.replay) == 0 ? 0 : EXIT_OWN_FAILURE;
	if (options_attach(o) && options_sample_only(o))
		return watch_processes(run, rss_poll);
	return run_target(run, rss_poll, signal_out);
}

static int open_probes(struct run *run)
{
	const struct option_strings *given = &run->options->tracing.probe;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < given->count; i++)
		rc = custom_probes_add(&run->probes, given->data[i]);
	return rc;
}

/* Does what the options request. Returns the exit status; *signal_out: the signal to die of. */
static int run_all(struct run *run, int *signal_out)
{
	const struct options *o = run->options;
	struct rss_poll *rss_poll = NULL;
	int rc = EXIT_OWN_FAILURE;

	labels_open(run);
	run->is_set_up = check_instructions(o) == 0 && open_probes(run) == 0 &&
			 out_check_places(run) == 0 && limits_open(run) == 0 &&
			 leak_report_open(run) == 0 && open_events(run) == 0 &&
			 memusage_run_open(run) == 0 && rss_poll_open(run, &rss_poll) == 0;
	if (run->is_set_up)
		rc = profile(run, rss_poll, signal_out);
	if (run->first_pid)
		custom_probes_report(&run->probes);
	recording_now_poll(run, true);
	one_page_finish(run);
	summaries_finish(run);
	run->files_failed += memusage_run_close(run->memusage_run);
	run->files_failed += !rss_poll_close(rss_poll);
	if (run->events_file)
		fclose(run->events_file);
	if (run->lost_bytes > 0 && o->leaks.error_exitcode != 0 && *signal_out == 0)
		rc = (int)o->leaks.error_exitcode;
	if (run->is_set_up) {
		limits_finish(run);
		run->files_failed += o->repeat <= 1 && limits_write(run, &run->gate) != 0;
	}
	if (gate_failures(&run->gate) > 0 && o->repeat <= 1 && rc == 0 && *signal_out == 0)
		rc = EXIT_FAILURE;
	if (run->files_failed > 0 && rc == 0 && *signal_out == 0)
		rc = EXIT_OWN_FAILURE;
	return rc;
}

/* A replay or a core file needs none. */
static bool has_proc(const struct options *o)
{
	bool is_offline = o->files.replay || (options_core(o) && o->attach.pid_count == 0);
	return is_offline || explain_proc();
}

static int print_and_exit(const struct options *o)
{
	if (o->invocation.help)
		options_print_help(stdout, o->invocation.help);
	else
		options_print_version(stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
}

/* The original actions of the signals of write errors. */
struct write_signals {
	struct sigaction file, pipe;
};

/* There is no further run; without a first process there will be none in any. */
static bool is_last(const struct options *o, const struct repeat *repeat, int sig)
{
	return repeat->runs >= o->repeat || sig || signals_leave_request() || !repeat->first_pid;
}

static int run_once(struct options *o, const struct write_signals *signals, struct repeat *repeat,
		    int *signal_out)
{
	struct run run;
	int rc = EXIT_OWN_FAILURE;

	run_init(&run, o);
	run.command = o->command ? join_command(o->command) : xstrdup("");
	run.file_signal = signals->file;
	run.pipe_signal = signals->pipe;
	repeat_begin(repeat, &run);
	if (explain_descriptors())
		rc = o->inspect.what ? inspect_all(&run) : run_all(&run, signal_out);
	repeat_add(repeat, &run, *signal_out || signals_leave_request());
	if (o->repeat > 1 && is_last(o, repeat, *signal_out)) {
		repeat_finish(repeat, (unsigned)o->repeat);
		if (run.is_set_up && limits_write(&run, &repeat->gate) != 0 && rc == 0)
			rc = EXIT_OWN_FAILURE;
	}
	limits_close(&run);
	labels_close(&run);
	one_page_deinit(&run.page);
	summaries_deinit(&run.summaries);
	run_deinit(&run);
	return rc;
}

/* The status is that of the first run that fails. */
static int run_repeatedly(struct options *o, const struct write_signals *signals, int *signal_out)
{
	struct repeat repeat = {0};
	int status = 0;

	do {
		int rc = run_once(o, signals, &repeat, signal_out);

		status = status ? status : rc;
	} while (!is_last(o, &repeat, *signal_out));
	if (status == 0 && *signal_out == 0 && o->repeat > 1 && gate_failures(&repeat.gate) > 0)
		status = EXIT_FAILURE;
	repeat_deinit(&repeat);
	return status;
}

static int run_command(int argc, char **argv)
{
	struct write_signals signals;
	struct options o;
	int sig = 0, rc = EXIT_FAILURE;

	standard_files_hold();
	ignore_write_signals(&signals.file, &signals.pipe);
	if (options_parse(argc, argv, &o) != 0)
		return EXIT_FAILURE;
	if (o.invocation.help || o.invocation.version)
		return print_and_exit(&o);
	log_set_level(o.messages.level);
	log_set_color(o.messages.color);
	if (o.monitor_pid) {
		rc = monitor_client_run((pid_t)o.monitor_pid, o.command);
	} else if (out_check_names(&o) == 0 && log_file_open(&o) == 0 && has_proc(&o)) {
		rc = run_repeatedly(&o, &signals, &sig);
	}
	options_deinit(&o);
	if (sig != 0)
		die_of(sig);
	return rc;
}

int main(int argc, char **argv)
{
	return own_stack_call(run_command, argc, argv);
}
