/*
 * signalled wait|work: one thread, which gets signals. Commands on standard input, each answered by the same letter
 * on standard output:
 *	m  read by the program itself
 *	h  read by its handler of SIGUSR1, which waits for it
 * With "wait" it waits for them; with "work" it allocates until end of input, and a timer ticks all the time.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static int next_letter(void)
{
	char c;
	ssize_t n = read(STDIN_FILENO, &c, 1);

	if (n == 0)
		return 0;
	if (n != 1 || write(STDOUT_FILENO, &c, 1) != 1)
		_exit(3);
	return c;
}

static void on_user(int sig)
{
	(void)sig;
	if (next_letter() != 'h')
		_exit(4);
}

static void on_tick(int sig)
{
	(void)sig;
}

static void catch(int sig, void (*fn)(int))
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = fn;
	sa.sa_flags = SA_RESTART;
	if (sigaction(sig, &sa, NULL))
		_exit(2);
}

static void work(void)
{
	struct itimerval every = { { 0, 50 }, { 0, 50 } };
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (setitimer(ITIMER_REAL, &every, NULL))
		_exit(2);
	do {
		for (unsigned n = 0; n < 1000; n++)
			free(malloc(16 + n % 100));
	} while (poll(&input, 1, 0) <= 0);
}

int main(int argc, char **argv)
{
	catch(SIGUSR1, on_user);
	catch(SIGALRM, on_tick);
	if (write(STDOUT_FILENO, ".", 1) != 1)
		return 2;
	if (argc > 1 && strcmp(argv[1], "work") == 0)
		work();
	for (int c; (c = next_letter());)
		if (c != 'm')
			return 5;
	return 0;
}
