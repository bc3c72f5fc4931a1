/*
 * altstacks: threads wait in signal handlers that have stacks of their own, after using much of
 * their ordinary ones:
 *
 *	main     a handler's stack among the program's variables
 *	mapped   in a mapping, used by two handlers, one in the other
 *	heap     in a block of malloc
 *	none     on the ordinary stack
 *
 * expect: the first line is "ready USED TOUCHED": at least so many bytes of each ordinary stack are
 * in use, and so many more were. Each has the only pointer to a block of BLOCK bytes. Ends with
 * its input.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

#define USED (256u << 10)
#define TOUCHED (1u << 20)
#define ALTERNATE (64u << 10)
#define BLOCK 12345

enum { MAIN, MAPPED, HEAP, NONE, THREADS };

static char of_main[ALTERNATE] __attribute__((aligned(16)));
static sem_t is_waiting;
static __thread int which;

static void wait_for_end(void)
{
	char text[64], letter;
	int size = snprintf(text, sizeof(text), "ready %u %u\n", USED, TOUCHED);

	if (write(STDOUT_FILENO, text, (size_t)size) != size)
		_exit(1);
	while (read(STDIN_FILENO, &letter, 1) == 1)
		;
	_exit(0);
}

static void handle(int sig)
{
	if (which == MAPPED && sig == SIGUSR1)
		raise(SIGUSR2);
	if (which == MAIN)
		wait_for_end();
	sem_post(&is_waiting);
	for (;;)
		pause();
}

static void set_stack(void)
{
	stack_t stack = {.ss_size = ALTERNATE};

	if (which == MAIN)
		stack.ss_sp = of_main;
	else if (which == MAPPED)
		stack.ss_sp = mmap(NULL, ALTERNATE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	else
		stack.ss_sp = malloc(ALTERNATE);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0)
		exit(90);
}

NOINLINE static void touch(void)
{
	char room[USED + TOUCHED];

	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
}

NOINLINE static void interrupt(void)
{
	char room[USED];
	char *volatile block = malloc(BLOCK);

	memset(room, 1, sizeof(room));
	__asm__ volatile("" : : "r"(room) : "memory");
	memset(block, 1, BLOCK);
	raise(SIGUSR1);
	exit(block == NULL);
}

static void *run(void *arg)
{
	which = (int)(long)arg;
	if (which != NONE)
		set_stack();
	touch();
	interrupt();
	return NULL;
}

int main(void)
{
	const struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_NODEFER};
	pthread_t thread;

	sem_init(&is_waiting, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	for (long i = MAIN + 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, run, (void *)i) != 0)
			return 91;
	for (int i = MAIN + 1; i < THREADS; i++)
		sem_wait(&is_waiting);
	run((void *)MAIN);
}
