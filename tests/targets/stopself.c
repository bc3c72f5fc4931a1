/*
 * stopself: what a program can do about job control. It writes its pid to the file "pid" and
 * counts the SIGCONTs that it gets, in the file "continued" and, in the foreground, on the
 * terminal. It continues when it reads a line from there; in the background it does not read before
 * there is a file "go".
 *
 *	self SIGNAL     stops itself, then reads a line
 *	group SIGNAL    stops its process group
 *	threads SIGNAL  stops itself while other threads allocate
 *	work            allocates until it was continued, then reads a line
 *	handler         the same, and catches SIGTSTP as an editor does
 *	ignore          ignores SIGTSTP, reads a line
 *	read            reads a line
 *	child           stops itself while a child in another group allocates; that continues it
 *	                when the file "go" is there
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define STATUS 3

static volatile sig_atomic_t continued;
static volatile int is_over;

static void say(const char *text)
{
	CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

static void nap(void)
{
	struct timespec t = {0, 1000000};
	nanosleep(&t, NULL);
}

static void write_number(const char *path, unsigned long number)
{
	char name[64];
	snprintf(name, sizeof(name), "%s.new", path);
	FILE *file = fopen(name, "w");
	CHECK(file && fprintf(file, "%lu\n", number) > 0 && fclose(file) == 0);
	CHECK(rename(name, path) == 0);
}

static void on_continue(int sig)
{
	(void)sig;
	continued++;
}

/* Releases the terminal, so to say; stops; and takes it again. */
static void on_suspend(int sig)
{
	sigset_t set;
	say("handler\n");
	signal(sig, SIG_DFL);
	raise(sig);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* it stops here */
	signal(sig, on_suspend);
	say("handler continued\n");
}

static void work(void)
{
	free(malloc(100));
	nap();
}

static void work_until_continued(void)
{
	say("working\n");
	while (!continued)
		work();
}

static void *work_on(void *arg)
{
	(void)arg;
	while (!is_over)
		work();
	return NULL;
}

static void stop_with_threads(int sig)
{
	pthread_t thread[3];
	for (int i = 0; i < 3; i++)
		CHECK(pthread_create(&thread[i], NULL, work_on, NULL) == 0);
	kill(getpid(), sig);
	is_over = 1;
	for (int i = 0; i < 3; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

static void run_child(pid_t parent)
{
	setpgid(0, 0);
	for (unsigned long n = 0; access("go", F_OK) != 0; n++) {
		work();
		write_number("progress", n);
	}
	kill(parent, SIGCONT);
	_exit(0);
}

static void stop_beside_child(void)
{
	int status;
	pid_t parent = getpid(), pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		run_child(parent);
	kill(parent, SIGSTOP);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void read_line(void)
{
	char line[100], text[120];
	ssize_t n;
	while ((n = read(0, line, sizeof(line))) < 0 && errno == EINTR)
		;
	CHECK(n > 0);
	snprintf(text, sizeof(text), "read %.*s", (int)n, line);
	say(text);
}

static int signal_number(const char *name)
{
	static const struct { const char *name; int number; } known[] = {
		{"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU}};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(name, known[i].name) == 0)
			return known[i].number;
	abort();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int sig = argc > 2 ? signal_number(argv[2]) : 0;
	struct sigaction sa = {.sa_handler = on_continue, .sa_flags = SA_RESTART};
	char text[60];
	sigaction(SIGCONT, &sa, NULL);
	write_number("pid", (unsigned long)getpid());
	for (int i = 0; i < 100; i++)
		t_free(t_malloc(100), 100);
	if (!strcmp(mode, "self"))
		kill(getpid(), sig);
	else if (!strcmp(mode, "group"))
		kill(0, sig);
	else if (!strcmp(mode, "threads"))
		stop_with_threads(sig);
	else if (!strcmp(mode, "child"))
		stop_beside_child();
	else if (!strcmp(mode, "ignore"))
		signal(SIGTSTP, SIG_IGN);
	else if (!strcmp(mode, "handler"))
		signal(SIGTSTP, on_suspend);
	if (!strcmp(mode, "handler") || !strcmp(mode, "work"))
		work_until_continued();
	write_number("continued", (unsigned long)continued);
	if (tcgetpgrp(0) == getpgrp()) {
		snprintf(text, sizeof(text), "continued %d\n", (int)continued);
		say(text);
	} else {
		/* must not mix with the shell's output, nor stop before the shell has its prompt */
		while (access("go", F_OK) != 0)
			work();
	}
	read_line();
	return STATUS;
}
