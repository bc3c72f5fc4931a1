/*
 * exits code N | quick N | signal N | group N | thread N: allocates, then ends by exit, _exit, a
 * signal to itself, a signal to its process, _exit from a thread. exits segv | trap | ill | fpe: by
 * a fault of its own.
 */
#include "truth.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static int number;

static void *leave(void *arg)
{
	t_malloc(55);
	truth_report();
	syscall(SYS_exit_group, number);
	return arg;
}

static void fault(const char *how)
{
	volatile int zero = 0;

	if (!strcmp(how, "segv"))
		*(volatile int *)(uintptr_t)8 = 1;
	else if (!strcmp(how, "ill"))
		__asm__ volatile("ud2");
	else if (!strcmp(how, "trap"))
		__asm__ volatile("int3");
	else if (!strcmp(how, "fpe"))
		__asm__ volatile("cltd; idivl %0" : : "m"(zero) : "eax", "edx", "cc");
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	pthread_t thread;

	CHECK(argc > 1);
	setrlimit(RLIMIT_CORE, &none);
	number = (int)argument(argc, argv, 2, 0);
	t_free(t_malloc(1000), 1000);
	t_malloc(234);
	if (!strcmp(argv[1], "thread")) {
		truth.has_threads = 1;
		CHECK(!pthread_create(&thread, NULL, leave, NULL));
		pthread_join(thread, NULL);
	}
	truth_report();
	if (!strcmp(argv[1], "code"))
		return number;
	if (!strcmp(argv[1], "quick"))
		_exit(number);
	if (!strcmp(argv[1], "signal"))
		raise(number);
	else if (!strcmp(argv[1], "group"))
		kill(getpid(), number);
	else
		fault(argv[1]);
	CHECK(!"still here");
	return 0;
}
