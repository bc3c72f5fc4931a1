/*
 * sigmask [trap | open | serve]: allocates with every signal blocked, SIGTRAP included; afterwards
 * the mask must be unchanged. With trap: with SIGTRAP ignored, and with SIGTRAP alone blocked and
 * handled. With open, only this: allocates with every signal blocked but SIGTRAP, which it handles,
 * between SIGTRAPs that it raises. With serve, only this: handles SIGTRAP, prints "ready" and
 * allocates with every signal blocked until the end of its input; for each byte of that it allocates
 * and prints "used".
 */
#include "truth.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static void use(void)
{
	for (int i = 0; i < 200; i++) {
		void *p = t_malloc(100);

		p = t_realloc(p, 100, 300);
		t_free(p, 300);
	}
}

static void check_mask(const sigset_t *want)
{
	sigset_t now;

	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &now));
	for (int i = 1; i < 65; i++)
		if (i != 32 && i != 33) /* the C library's own */
			CHECK(sigismember(&now, i) == sigismember(want, i));
}

static void check_action(int number, void (*handler)(int))
{
	struct sigaction sa;

	CHECK(!sigaction(number, NULL, &sa));
	CHECK(sa.sa_handler == handler);
}

static void block_all(void)
{
	sigset_t all, old, kept;

	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_SETMASK, &all, &old));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &kept)); /* SIGKILL and SIGSTOP are never in it */
	use();
	check_mask(&kept);
	check_action(SIGTRAP, SIG_DFL);
	CHECK(!pthread_sigmask(SIG_SETMASK, &old, NULL));
	use();
	check_mask(&old);
}

static void on_signal(int number)
{
	(void)number;
}

static void *in_thread(void *arg)
{
	block_all();
	return arg;
}

static void trap_only(void)
{
	sigset_t trap;

	CHECK(signal(SIGTRAP, SIG_IGN) != SIG_ERR);
	use();
	check_action(SIGTRAP, SIG_IGN);
	CHECK(signal(SIGTRAP, on_signal) != SIG_ERR);
	sigemptyset(&trap);
	sigaddset(&trap, SIGTRAP);
	CHECK(!pthread_sigmask(SIG_BLOCK, &trap, NULL));
	use();
	check_mask(&trap);
	check_action(SIGTRAP, on_signal);
	CHECK(!pthread_sigmask(SIG_UNBLOCK, &trap, NULL));
	CHECK(signal(SIGTRAP, SIG_DFL) != SIG_ERR);
}

static volatile int handled;

static void count_signal(int number)
{
	(void)number;
	handled++;
}

static int open_trap(void)
{
	sigset_t others, kept;

	CHECK(signal(SIGTRAP, count_signal) != SIG_ERR);
	sigfillset(&others);
	sigdelset(&others, SIGTRAP);
	CHECK(!pthread_sigmask(SIG_SETMASK, &others, NULL));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &kept));
	for (int i = 1; i <= 5; i++) {
		use();
		check_mask(&kept);
		check_action(SIGTRAP, count_signal);
		CHECK(!raise(SIGTRAP));
		CHECK(handled == i);
	}
	truth_report();
	print_ok();
	return 0;
}

static int serve(void)
{
	struct pollfd input = { STDIN_FILENO, POLLIN, 0 };
	sigset_t all, kept;
	bool is_asked = false;
	char byte;

	CHECK(signal(SIGTRAP, on_signal) != SIG_ERR);
	sigfillset(&all);
	CHECK(!pthread_sigmask(SIG_SETMASK, &all, NULL));
	CHECK(!pthread_sigmask(SIG_SETMASK, NULL, &kept));
	CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	do {
		use();
		check_mask(&kept);
		if (is_asked)
			CHECK(write(STDOUT_FILENO, "used\n", 5) == 5);
		is_asked = poll(&input, 1, 1) > 0;
	} while (!is_asked || read(STDIN_FILENO, &byte, 1) == 1);
	truth_report();
	print_ok();
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	truth.has_threads = 1;
	if (argc > 1 && !strcmp(argv[1], "serve"))
		return serve();
	if (argc > 1 && !strcmp(argv[1], "open"))
		return open_trap();
	block_all();
	if (argc > 1)
		trap_only();
	CHECK(!pthread_create(&thread, NULL, in_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
	truth_report();
	print_ok();
	return 0;
}
