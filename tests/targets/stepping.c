/*
 * Single-steps itself through pairs of malloc and free (the trap flag, a handler of SIGTRAP) until its
 * standard input ends. Exit status 0: each step was seen by the handler, and nothing else.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t steps, wrong;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	wrong += info->si_code != TRAP_TRACE;
	steps++;
}

static void step_pair(size_t size)
{
	void *volatile p;

	__asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" : : : "memory", "cc");
	p = malloc(size);
	free(p);
	__asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" : : : "memory", "cc");
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	char letter;

	sigaction(SIGTRAP, &sa, NULL);
	fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	for (size_t pairs = 0; read(STDIN_FILENO, &letter, 1) != 0; pairs++) {
		int before = steps;

		step_pair(100 + pairs % 1000);
		wrong += steps - before < 20;
	}
	return wrong != 0;
}
