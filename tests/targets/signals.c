/*
 * signals timer: a 1 kHz timer interrupts a main program that allocates; the handler runs on its
 * own stack and checks its context; every expiry that the kernel delivered counts. signals
 * allocate: handlers allocate, while the main program is outside malloc. signals queue: 500 queued
 * real-time signals arrive once each, in order, with their values. signals nested: a handler
 * interrupted by another one, alternate stacks, SA_NODEFER.
 */
#include "truth.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define STACK_SIZE (64 * 1024)

static unsigned char alternate[STACK_SIZE] __attribute__((aligned(16)));
static volatile sig_atomic_t handled, off_stack, want, may_allocate;
static volatile int values[1000];

static int is_on_alternate(const void *p)
{
	return (const unsigned char *)p >= alternate && (const unsigned char *)p < alternate + STACK_SIZE;
}

static void catch(int number, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa;
	stack_t stack;

	memset(&stack, 0, sizeof(stack));
	stack.ss_sp = alternate;
	stack.ss_size = STACK_SIZE;
	CHECK(!sigaltstack(&stack, NULL));
	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = fn;
	sa.sa_flags = SA_SIGINFO | flags;
	CHECK(!sigaction(number, &sa, NULL));
}

static void on_timer(int number, siginfo_t *info, void *context)
{
	int here;

	(void)number, (void)context;
	handled++;
	if (!is_on_alternate(&here) || info->si_code != SI_KERNEL)
		off_stack++;
}

/* Local function of the loop: the handler may interrupt malloc at any instruction. */
static void timer(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	uint64_t seed = 3;
	void *held[32] = { 0 };
	size_t sizes[32] = { 0 };

	catch(SIGALRM, on_timer, SA_ONSTACK | SA_RESTART);
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
	for (int i = 0; i < 3000 || handled < 100; i++) {
		unsigned k = random_next(&seed) % 32;

		t_free(held[k], sizes[k]);
		sizes[k] = random_next(&seed) % 5000;
		held[k] = t_malloc(sizes[k]);
		memset(held[k], 1, sizes[k]);
	}
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
	CHECK(!off_stack);
}

static void on_allocate(int number, siginfo_t *info, void *context)
{
	void *p;

	(void)number, (void)info, (void)context;
	if (!may_allocate)
		return;
	p = t_malloc(123);
	p = t_realloc(p, 123, 4567);
	t_free(p, 4567);
	t_free(t_calloc(3, 3), 9);
	handled++;
}

static void allocate(void)
{
	struct itimerval every = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };

	catch(SIGALRM, on_allocate, SA_ONSTACK);
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
	for (int round = 0; round < 50; round++) {
		sig_atomic_t before = handled;
		void *p = t_malloc(1000);

		may_allocate = 1;
		while (handled == before)
			;
		may_allocate = 0;
		t_free(p, 1000);
	}
	CHECK(!setitimer(ITIMER_REAL, &none, NULL));
}

static void on_queued(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	values[handled++] = info->si_value.sival_int;
	if (info->si_code != SI_QUEUE || info->si_pid != getpid())
		off_stack++;
}

static void queue(void)
{
	sigset_t set;

	catch(SIGRTMIN, on_queued, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (int i = 0; i < 500; i++) {
		union sigval value = { .sival_int = i * 3 };

		if (i % 10 == 0)
			CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
		CHECK(!sigqueue(getpid(), SIGRTMIN, value));
		t_free(t_malloc(50), 50);
		if (i % 10 == 9)
			CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
	}
	CHECK(handled == 500 && !off_stack);
	for (int i = 0; i < 500; i++)
		CHECK(values[i] == i * 3);
}

static void on_inner(int number, siginfo_t *info, void *context)
{
	(void)number, (void)info, (void)context;
	t_free(t_malloc(20), 20);
	handled++;
}

static void on_outer(int number, siginfo_t *info, void *context)
{
	void *p = t_malloc(10);
	int here;

	(void)info, (void)context;
	if (!is_on_alternate(&here))
		off_stack++;
	raise(SIGUSR2);
	if (number == SIGUSR1 && ++want < 5)
		raise(SIGUSR1); /* SA_NODEFER: nests */
	t_free(p, 10);
}

static void nested(void)
{
	catch(SIGUSR2, on_inner, 0);
	catch(SIGUSR1, on_outer, SA_ONSTACK | SA_NODEFER);
	for (int i = 0; i < 20; i++) {
		want = 0;
		raise(SIGUSR1);
	}
	CHECK(handled == 100 && !off_stack);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	if (!strcmp(argv[1], "timer"))
		timer();
	else if (!strcmp(argv[1], "allocate"))
		allocate();
	else if (!strcmp(argv[1], "queue"))
		queue();
	else
		nested();
	truth_report();
	print_ok();
	return 0;
}
