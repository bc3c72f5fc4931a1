/*
 * altexit: three threads wait in signal handlers, each with a stack of its own for them: among the
 * program's variables, in a mapping, in a block of malloc. A handler's frame has the only pointer to
 * a block, and the last thread's ordinary stack that to its other one. Then main ends the program.
 *
 * expect: no block of BLOCK or ALTERNATE bytes is lost.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

#define ALTERNATE (64u << 10)
#define BLOCK 12345

enum { VARIABLE, MAPPED, HEAP, THREADS };

static char of_variable[ALTERNATE] __attribute__((aligned(16)));
static sem_t is_waiting;

NOINLINE static void handle(int sig)
{
	char *volatile block = malloc(BLOCK);

	sem_post(&is_waiting);
	for (;;)
		pause();
	free(block);
	(void)sig;
}

static void *run(void *which)
{
	volatile stack_t stack = {.ss_size = ALTERNATE};

	if ((long)which == VARIABLE)
		stack.ss_sp = of_variable;
	else if ((long)which == MAPPED)
		stack.ss_sp = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		stack.ss_sp = malloc(ALTERNATE);
	if (sigaltstack((stack_t *)&stack, NULL) != 0)
		_exit(90);
	raise(SIGUSR1);
	return stack.ss_sp;
}

int main(void)
{
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	pthread_t thread;

	sem_init(&is_waiting, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)i) != 0)
			return 91;
	for (int i = 0; i < THREADS; i++)
		sem_wait(&is_waiting);
	_exit(0);
}
