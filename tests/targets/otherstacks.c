/*
 * otherstacks WHO WHERE: main or a thread calls malloc on its own stack, and deeper on other ones:
 * in a handler on an alternate stack, and in a coroutine. It prints the depth of its own stack.
 *
 *	peak: BYTES          from the first stack pointer of main, or that of the thread's first call
 *
 * in the file named by TRUTH.
 *
 *	WHO    main | thread | given (a thread on a stack that the program gave it)
 *	WHERE  mapped | heap (the memory of the other stacks)
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define FRAME 1000
#define STACK_SIZE (256 * 1024)

static uint64_t start, peak;  /* of the own stack; start 0: the first call is it */
static int is_elsewhere, is_heap;
static ucontext_t back, fiber;

#define STACK_POINTER() ({ uint64_t sp_; __asm__ volatile("mov %%rsp, %0" : "=r"(sp_)); sp_; })

static void note(uint64_t sp)
{
	start = start ? start : sp;
	if (!is_elsewhere && start - sp > peak)
		peak = start - sp;
}

/* The stack pointer at the call is that of the function around it: nothing is pushed. */
#define CALL() do { \
		note(STACK_POINTER()); \
		void *p_ = malloc(24); \
		__asm__ volatile("" : "+r"(p_)); \
	} while (0)

NOINLINE static void descend(int levels)
{
	volatile char room[FRAME];

	room[0] = room[FRAME - 1] = 1;
	CALL();
	if (levels > 0)
		descend(levels - 1);
	CALL();
	room[0] = 2;
}

static void *memory(void)
{
	void *p = is_heap ? malloc(STACK_SIZE) :
		mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p && p != MAP_FAILED);
	return p;
}

static void on_signal(int sig)
{
	(void)sig;
	is_elsewhere = 1;
	descend(60);
	is_elsewhere = 0;
}

NOINLINE static void handle(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t stack = {.ss_sp = memory(), .ss_size = STACK_SIZE};

	CHECK(!sigaltstack(&stack, NULL));
	CHECK(!sigaction(SIGUSR1, &sa, NULL));
	CHECK(!pthread_kill(pthread_self(), SIGUSR1));
}

static void run_fiber(void)
{
	descend(60);
}

NOINLINE static void switch_stack(void)
{
	CHECK(!getcontext(&fiber));
	fiber.uc_stack.ss_sp = memory();
	fiber.uc_stack.ss_size = STACK_SIZE;
	fiber.uc_link = &back;
	makecontext(&fiber, run_fiber, 0);
	is_elsewhere = 1;
	CHECK(!swapcontext(&back, &fiber));
	is_elsewhere = 0;
}

static void *work(void *arg)
{
	CALL();
	descend(2);
	handle();
	switch_stack();
	descend(20);
	switch_stack();
	return arg;
}

static void run_thread(int is_given)
{
	pthread_attr_t attr;
	pthread_t thread;

	CHECK(!pthread_attr_init(&attr));
	if (is_given)
		CHECK(!pthread_attr_setstack(&attr, memory(), STACK_SIZE));
	CHECK(!pthread_create(&thread, &attr, work, NULL));
	CHECK(!pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	const char *who = argc > 1 ? argv[1] : "main";
	FILE *file = fopen(getenv("TRUTH") ? getenv("TRUTH") : "/dev/stdout", "w");

	CHECK(file);
	is_heap = argc > 2 && !strcmp(argv[2], "heap");
	if (!strcmp(who, "main")) {
		start = (uint64_t)argv - sizeof(uint64_t);
		work(NULL);
	} else {
		run_thread(!strcmp(who, "given"));
	}
	fprintf(file, "peak: %lu\n", (unsigned long)peak);
	return fclose(file);
}
