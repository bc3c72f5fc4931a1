/*
 * ptmem: the command. Reads the options, starts or attaches, runs the loop, and
 * ends as its program did. The only place that exits.
 *
 * Signals to ptmem: Ctrl-C at a terminal goes to a started program, too, which
 * decides for itself; everything else (SIGTERM, SIGHUP, kill -INT, and Ctrl-C
 * with -p) means: detach, write, leave.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/standard_files.h"
#include "base/stream.h"
#include "explain.h"
#include "growth.h"
#include "log_file.h"
#include "monitor.h"
#include "options.h"
#include "session_replay.h"
#include "session_sink.h"
#include "session_stacks.h"
#include "target/instructions.h"
#include "target/target.h"
#include "top.h"

enum { EXIT_OWN_FAILURE = 125, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

/* What a signal handler leaves behind: which signal asked to leave. 0 = none. */
static volatile sig_atomic_t leave_signal;
static volatile sig_atomic_t is_leaving; /* the loop has seen that */
static volatile sig_atomic_t times_asked; /* by somebody, not by a timer */
static volatile sig_atomic_t is_attached;
static struct sigaction file_signal; /* what SIGXFSZ was before we came */
static struct target *check_target;
static struct monitor *monitor; /* of the only run */

/*
 * A signal may come just before waitpid: a timer wakes it again until the loop has seen it. Who asks
 * again while we leave starts no more timers: nobody would stop them.
 */
static void keep_waking(void)
{
	const struct itimerval again = {{0, 20000}, {0, 20000}};
	if (is_leaving)
		return;
	setitimer(ITIMER_REAL, &again, NULL);
	target_wake();
}

static void stop_waking(void)
{
	const struct itimerval off = {{0, 0}, {0, 0}};
	is_leaving = 1;
	setitimer(ITIMER_REAL, &off, NULL);
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig != SIGALRM)
		times_asked = times_asked + 1;
	if (sig == SIGALRM) {
		if (!leave_signal)
			leave_signal = SIGALRM; /* the duration is over */
	} else if (!is_attached && info->si_code == SI_KERNEL) {
		return; /* typed at the terminal: the program got it as well */
	} else {
		leave_signal = sig;
	}
	keep_waking();
}

/* A file that grows beyond RLIMIT_FSIZE is an error like others, which is said. */
static void ignore_file_signal(void)
{
	const struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGXFSZ, &ignore, &file_signal);
}

static unsigned count_asked(void)
{
	return (unsigned)times_asked;
}

static void catch_signals(const struct options *o)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM};
	struct sigaction sa = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
		sigaction(caught[i], NULL, &old);
		if (old.sa_handler != SIG_IGN || caught[i] == SIGALRM)
			sigaction(caught[i], &sa, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
	stream_set_asked(count_asked);
	growth_catch_signals(o);
}

static bool should_leave(void *ctx)
{
	bool wants_detach = monitor_serve(monitor);
	if (!leave_signal && growth_poll(ctx))
		leave_signal = SIGINT;
	if (leave_signal)
		stop_waking();
	return leave_signal != 0 || wants_detach;
}

static void start_duration(double seconds)
{
	if (seconds <= 0)
		return;
	struct itimerval t = {{0, 20000}, {0, 0}};
	t.it_value.tv_sec = (time_t)seconds;
	t.it_value.tv_usec = (suseconds_t)((seconds - (double)t.it_value.tv_sec) * 1e6);
	if (t.it_value.tv_sec == 0 && t.it_value.tv_usec == 0)
		t.it_value.tv_usec = 1;
	setitimer(ITIMER_REAL, &t, NULL);
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

/* -- beginnings -- */

/* --time-unit=i: said before the program starts. */
static int check_instructions(const struct options *o)
{
	int rc = o->time_unit == TIME_INSTRUCTIONS && !o->replay_file ? instructions_check() : 0;
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

static int attach_all(struct run *run)
{
	unsigned attached = 0;
	is_attached = true;
	for (uint32_t i = 0; i < run->options->pid_count; i++) {
		enum attach_problem problem = ATTACH_OTHER;
		long detail = -1;
		pid_t pid = run->options->pid[i];
		uint64_t threads = target_stats(run->target)->threads;
		int rc = target_attach(run->target, pid, &problem, &detail);
		if (rc != 0) {
			explain_attach(pid, rc, problem, detail);
			continue;
		}
		attached++;
		threads = target_stats(run->target)->threads - threads;
		log_info("attached to process %d (%llu thread%s paused for %.1f ms)", pid,
			 (unsigned long long)threads, threads == 1 ? "" : "s",
			 (double)target_stats(run->target)->attach_ns / 1e6);
	}
	return attached > 0 ? 0 : EXIT_OWN_FAILURE;
}

/* -- ends -- */

static void leave_target_behind(void)
{
	if (check_target)
		target_abandon(check_target);
}

/* The program's wait status, waited for if it runs on without us. */
static bool await_program(struct run *run, int *status)
{
	pid_t pid = target_first_pid(run->target);
	if (!target_exit_status(run->target, status))
		usage_watch(run->usage, &pid, 1, should_leave, run);
	while (!target_exit_status(run->target, status)) {
		pid_t got = waitpid(pid, status, __WALL);
		if (got == pid)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		if (leave_signal) {
			stop_waking();
			return false;
		}
	}
	return true;
}

ATTR_NORETURN static void die_of(int sig)
{
	const struct rlimit no_core = {0, 0};
	sigset_t set;
	setrlimit(RLIMIT_CORE, &no_core); /* the program's core is the one to look at */
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	_exit(128 + sig);
}

static int finish_started(struct run *run, int *signal_out)
{
	int status = 0;
	enum attach_problem problem = target_refusal(run->target);
	if (problem != ATTACH_OK) {
		await_program(run, &status);
		explain_refusal(run->options->command[0], problem);
		return EXIT_OWN_FAILURE;
	}
	if (leave_signal && leave_signal != SIGALRM) {
		*signal_out = leave_signal;
		return 0;
	}
	if (!await_program(run, &status)) {
		*signal_out = leave_signal;
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
	bool stays = target_must_stay(target);
	if (stays)
		log_info("the profile ends; the program runs on, and ptmem with it, since its "
			 "calls of brk and mmap stop for ptmem");
	target_detach(target);
	if (!stays)
		log_info("detached; the program runs on");
}

static int run_target(struct run *run, int *signal_out)
{
	struct target_sink sink;
	const struct options *o = run->options;
	session_sink_fill(&sink, run);
	sink.poll = should_leave;
	sink.monitor = monitor_from_program;
	struct target_options to = {
		.follow_exec = o->trace_children,
		.count_instructions = o->time_unit == TIME_INSTRUCTIONS,
		/* pads record no stacks of frees */
		.free_stacks = o->xtree_memory == XTREE_FULL,
		.no_promotion = o->probes == PROBES_BREAK || o->xtree_memory == XTREE_FULL,
		.promote_at_once = o->probes == PROBES_JUMP && o->xtree_memory != XTREE_FULL,
		.watch_brk = o->pages_as_heap || o->trace & 1u << SOURCE_BRK,
		.watch_faults = o->trace & 1u << SOURCE_FAULTS,
		.watch_mappings = o->pages_as_heap || o->trace & 1u << SOURCE_MMAP,
		.mempools = o->mempools,
		.running_on_valgrind = o->running_on_valgrind,
		.ring_size = o->ring,
		.file_signal = &file_signal,
		.somalloc = o->soname_synonyms,
		.last_look = o->leak_check,
		.verify = getenv("PTMEM_VERIFY") != NULL,
	};
	usage_fill_target(o, &to);
	usage_fill_sink(o, &sink);
	session_stacks_fill(o, &to, &sink);
	run->target = check_target = target_new(&to, &sink);
	log_set_check_hook(leave_target_behind);
	int rc;
	if (o->pid_count > 0) {
		catch_signals(o);
		rc = attach_all(run);
		start_duration(o->duration);
	} else {
		rc = start_program(run);
		catch_signals(o);
	}
	if (rc == 0) {
		monitor = monitor_open(run);
		top_start(run);
		target_run(run->target);
		top_stop(run);
		monitor_stop(monitor);
		if (target_process_count(run->target) > 0)
			leave_program(run->target);
		monitor_close(monitor);
		monitor = NULL;
		rc = o->pid_count > 0 ? 0 : finish_started(run, signal_out);
	}
	check_target = NULL;
	target_free(run->target);
	return rc;
}

/* Samples alone, of processes that run: nobody is traced. */
static int watch_processes(struct run *run)
{
	const struct options *o = run->options;
	pid_t *pids = xcalloc(o->pid_count, sizeof(*pids));
	size_t count = 0;
	for (uint32_t i = 0; i < o->pid_count; i++) {
		enum attach_problem problem =
			o->pid[i] == getpid() ? ATTACH_SELF : target_look(o->pid[i]);
		if (problem == ATTACH_OK || problem == ATTACH_DEAD_LEADER)
			pids[count++] = o->pid[i];
		else
			explain_attach(o->pid[i], 0, problem, 0);
	}
	catch_signals(o);
	is_attached = true;
	start_duration(o->duration);
	usage_watch(run->usage, pids, count, should_leave, run);
	free(pids);
	return count > 0 ? 0 : EXIT_OWN_FAILURE;
}

static int open_events(struct run *run)
{
	const char *path = run->options->events_file;
	if (!path)
		return 0;
	run->events_file = stream_create(path);
	if (run->events_file)
		return 0;
	log_error("cannot write %s: %s", path, strerror(errno));
	return -EIO;
}

static int run_all(struct options *o, int *signal_out)
{
	struct run run;
	run_init(&run, o);
	run.command = o->command ? join_command(o->command) : xstrdup("");
	int rc;
	if (run_check_patterns(&run) != 0)
		rc = EXIT_FAILURE;
	else if (check_instructions(o) != 0 || run_check_out_files(&run) != 0 ||
		 open_events(&run) != 0 || (usage_is_wanted(o) && usage_open(&run) != 0))
		rc = EXIT_OWN_FAILURE;
	else if (o->replay_file)
		rc = session_replay(&run, o->replay_file) == 0 ? 0 : EXIT_OWN_FAILURE;
	else if (usage_needs_no_tracing(o))
		rc = watch_processes(&run);
	else
		rc = run_target(&run, signal_out);
	run.files_failed += usage_close(run.usage);
	if (run.events_file)
		fclose(run.events_file);
	if (growth_exit_code(&run) != 0 && *signal_out == 0)
		rc = growth_exit_code(&run);
	if (run.files_failed > 0 && rc == 0 && *signal_out == 0)
		rc = EXIT_OWN_FAILURE;
	run_deinit(&run);
	return rc;
}

int main(int argc, char **argv)
{
	struct options o;
	standard_files_hold();
	ignore_file_signal();
	if (options_parse(argc, argv, &o) != 0)
		return EXIT_FAILURE;
	if (o.help || o.version) {
		if (o.help)
			options_print_help(stdout);
		else
			options_print_version(stdout);
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
	}
	log_set_level(o.log_level);
	log_set_color(o.color);
	if (o.monitor_pid) {
		int status = monitor_client((pid_t)o.monitor_pid, o.command);
		options_deinit(&o);
		return status;
	}
	int sig = 0, rc = log_file_open(&o) == 0 ? run_all(&o, &sig) : EXIT_FAILURE;
	options_deinit(&o);
	if (sig != 0)
		die_of(sig);
	return rc;
}
