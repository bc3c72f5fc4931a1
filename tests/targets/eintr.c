/*
 * eintr: system calls that wait, interrupted by signals with and without SA_RESTART, behave as
 * signal(7) says; without a signal, and by one that is ignored, they are never interrupted.
 * Allocates all the while.
 */
#include "truth.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t handled;

static void on_signal(int number)
{
	(void)number;
	handled++;
}

static void catch(int flags)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sa.sa_flags = flags;
	CHECK(!sigaction(SIGALRM, &sa, NULL));
	handled = 0;
}

/* SIGALRM after @ms milliseconds, to the process; and each second, in case that was too early. */
static timer_t arm(long ms)
{
	struct itimerspec when = { { 1, 0 }, { ms / 1000, ms % 1000 * 1000000 } };
	struct sigevent event;
	timer_t timer;

	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGALRM;
	CHECK(!timer_create(CLOCK_MONOTONIC, &event, &timer));
	CHECK(!timer_settime(timer, 0, &when, NULL));
	return timer;
}

/* A signal interrupts @call, and its handler has run. */
#define CHECK_CUT_SHORT(call)                                                       \
	do {                                                                        \
		sig_atomic_t before = handled;                                      \
		CHECK((call) == -1 && errno == EINTR && handled > before);          \
	} while (0)

static void disarm(timer_t timer)
{
	CHECK(!timer_delete(timer));
	t_free(t_malloc(99), 99);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void sleep_is_cut_short(void)
{
	struct timespec want = { 5, 0 }, left = { 0, 0 };
	timer_t t = arm(50);

	CHECK_CUT_SHORT(nanosleep(&want, &left));
	CHECK(left.tv_sec < 5 && (left.tv_sec || left.tv_nsec));
	disarm(t);
}

/* The rest of the time is slept although nothing woke it. */
static void sleep_is_whole(void)
{
	struct timespec want = { 0, 150000000 };
	uint64_t start = now_ms();

	CHECK(!nanosleep(&want, NULL));
	CHECK(now_ms() - start >= 150);
}

static void read_is_interrupted(void)
{
	int fds[2];
	char c;
	timer_t t;

	CHECK(!pipe(fds));
	t = arm(50);
	CHECK_CUT_SHORT(read(fds[0], &c, 1));
	disarm(t);
	close(fds[0]);
	close(fds[1]);
}

/* A child writes after the signal: the restarted read gets its byte. */
static void read_is_restarted(void)
{
	struct timespec later = { 0, 150000000 };
	int fds[2], status;
	char c = 0;
	timer_t t;
	pid_t pid;

	catch(SA_RESTART);
	CHECK(!pipe(fds));
	pid = fork();
	if (!pid) {
		nanosleep(&later, NULL);
		_exit(write(fds[1], "x", 1) != 1);
	}
	t = arm(50);
	CHECK(read(fds[0], &c, 1) == 1 && c == 'x');
	while (!handled) /* it wrote early */
		CHECK(pause() == -1);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	disarm(t);
	close(fds[0]);
	close(fds[1]);
}

/* poll, epoll_wait, select and sigtimedwait are never restarted, SA_RESTART or not. */
static void waits_are_interrupted(int flags)
{
	struct epoll_event event;
	struct timeval tv = { 5, 0 };
	struct timespec ts = { 5, 0 };
	int epoll = epoll_create1(0);
	sigset_t none;
	timer_t t;

	catch(flags);
	t = arm(40);
	CHECK_CUT_SHORT(poll(NULL, 0, 5000));
	disarm(t);
	t = arm(40);
	CHECK_CUT_SHORT(epoll_wait(epoll, &event, 1, 5000));
	disarm(t);
	t = arm(40);
	CHECK_CUT_SHORT(select(0, NULL, NULL, NULL, &tv));
	disarm(t);
	sigemptyset(&none);
	sigaddset(&none, SIGUSR1);
	t = arm(40);
	CHECK_CUT_SHORT(sigtimedwait(&none, NULL, &ts));
	disarm(t);
	close(epoll);
}

/* Without a signal they run into their time. */
static void waits_time_out(void)
{
	struct epoll_event event;
	struct timespec ts = { 0, 60000000 };
	int epoll = epoll_create1(0), word = 7;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(poll(NULL, 0, 60) == 0);
	CHECK(epoll_wait(epoll, &event, 1, 60) == 0);
	CHECK(sigtimedwait(&set, NULL, &ts) == -1 && errno == EAGAIN);
	CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, &ts, NULL, 0) == -1 && errno == ETIMEDOUT);
	CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 8, &ts, NULL, 0) == -1 && errno == EAGAIN);
	close(epoll);
}

static void sigtimedwait_takes_it(void)
{
	struct timespec ts = { 5, 0 };
	siginfo_t info;
	sigset_t set;
	timer_t t;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	catch(0);
	t = arm(40);
	CHECK(sigtimedwait(&set, &info, &ts) == SIGALRM && info.si_code == SI_TIMER && !handled);
	disarm(t);
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	CHECK(!handled);
}

/* FUTEX_WAIT without a time: restarted with SA_RESTART, EINTR without. */
static void futex_waits(void)
{
	struct timespec ts = { 5, 0 };
	int word = 7;
	timer_t t;

	catch(0);
	t = arm(40);
	CHECK_CUT_SHORT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, NULL, NULL, 0));
	disarm(t);
	t = arm(40);
	CHECK_CUT_SHORT(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 7, &ts, NULL, 0));
	disarm(t);
}

static void pause_and_suspend(void)
{
	sigset_t block, old;
	sig_atomic_t before;
	timer_t t;

	catch(SA_RESTART);
	t = arm(40);
	CHECK_CUT_SHORT(pause());
	disarm(t);
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	CHECK(!sigprocmask(SIG_BLOCK, &block, &old));
	before = handled;
	t = arm(1);
	sleep_is_whole(); /* blocked: nothing interrupts */
	CHECK(handled == before);
	CHECK_CUT_SHORT(sigsuspend(&old));
	CHECK(!sigprocmask(SIG_SETMASK, &old, NULL));
	disarm(t);
}

/* A child that sends @number every 2 ms, five times, and then writes to @fd. */
static pid_t begin_sender(int number, int fd)
{
	struct timespec pause = { 0, 2000000 };
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	for (int i = 0; i < 5; i++) {
		nanosleep(&pause, NULL);
		if (kill(getppid(), number))
			_exit(1);
	}
	_exit(write(fd, "x", 1) != 1);
}

/* Signals that the program ignores, by default or not, interrupt no call that waits for ever. */
static void ignored_signals(int number)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), fds[2], status;
	char c;

	CHECK(!pipe(fds) && !epoll_ctl(epoll, EPOLL_CTL_ADD, fds[0], &event));
	for (int i = 0; i < 4; i++) {
		pid_t pid = begin_sender(number, fds[1]);

		if (i % 2)
			CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
		else
			CHECK(epoll_pwait(epoll, &event, 1, -1, NULL) == 1);
		CHECK(read(fds[0], &c, 1) == 1);
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		t_free(t_malloc(77), 77);
	}
	close(epoll);
	close(fds[0]);
	close(fds[1]);
}

static int sleeps(pid_t pid)
{
	char path[40], text[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		_exit(1);
	close(fd);
	return strstr(text, ") S") != NULL;
}

/* Each time that its parent sleeps: both signals. It wakes the parent if there is no answer. */
static pid_t begin_pairs(int answers, int wake)
{
	struct timespec moment = { 0, 200000 };
	struct pollfd in = { .fd = answers, .events = POLLIN };
	pid_t pid = fork();
	char c;

	CHECK(pid >= 0);
	while (!pid) {
		while (!sleeps(getppid()))
			nanosleep(&moment, NULL);
		if (kill(getppid(), SIGURG) || kill(getppid(), SIGRTMIN))
			_exit(1);
		if (poll(&in, 1, 10000) != 1)
			_exit(write(wake, "x", 1) != 1);
		if (read(answers, &c, 1) != 1)
			_exit(1);
	}
	return pid;
}

/* One that it handles interrupts it, also if it comes together with one that it ignores. */
static void handled_beside_ignored(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0), answer[2], wake[2];
	struct sigaction sa;
	pid_t pid;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	CHECK(!sigaction(SIGRTMIN, &sa, NULL));
	CHECK(!pipe(answer) && !pipe(wake) && !epoll_ctl(epoll, EPOLL_CTL_ADD, wake[0], &event));
	pid = begin_pairs(answer[0], wake[1]);
	for (int i = 0; i < 100; i++) {
		CHECK_CUT_SHORT(epoll_wait(epoll, &event, 1, -1));
		CHECK(write(answer[1], "x", 1) == 1);
		t_free(t_malloc(55), 55);
	}
	CHECK(!kill(pid, SIGKILL));
	while (waitpid(pid, NULL, 0) < 0)
		CHECK(errno == EINTR);
	close(epoll);
	for (int i = 0; i < 2; i++) {
		close(answer[i]);
		close(wake[i]);
	}
}

/* A socket with a timeout, without data: it is what ends a wait, not a tracer that comes or goes. */
static int wait_at_socket(void)
{
	struct timeval tv = { 0, 150000 };
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int s[2];
	char c;

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK(!setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	while (poll(&in, 1, 0) == 0) {
		CHECK(recv(s[0], &c, 1, 0) == -1 && errno == EAGAIN);
		CHECK(read(s[0], &c, 1) == -1 && errno == EAGAIN);
		free(malloc(33));
	}
	print_ok();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "socket"))
		return wait_at_socket();
	catch(0);
	sleep_is_cut_short();
	sleep_is_whole();
	catch(0);
	read_is_interrupted();
	read_is_restarted();
	waits_are_interrupted(0);
	waits_are_interrupted(SA_RESTART);
	waits_time_out();
	sigtimedwait_takes_it();
	futex_waits();
	pause_and_suspend();
	ignored_signals(SIGURG);
	ignored_signals(SIGCHLD);
	CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	ignored_signals(SIGUSR2);
	handled_beside_ignored();
	truth_report();
	print_ok();
	return 0;
}
