/*
 * clones MODE [COUNT]: threads and processes are created while a tracer stops all threads.
 *	vfork          children in vfork allocate in the parent's memory until pads are created there
 *	vfork-waits    children in vfork wait 20 ms before they execute true, while a thread allocates;
 *		       until the file `stop` exists
 *	vfork-blocked  a child in vfork waits from when the file `attached` exists until `stop` exists
 *	threads        forks COUNT children, each of which allocates in one thread while another creates
 *		       threads: a clone that fails, or returns a wrong id, is detected
 *	fork-trees     four processes fork children at the same time, which allocate and exit
 *	new-threads    the threads of one such child, again and again until the file `stop` exists
 */
#include "children.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

extern char **environ;

static int must_stop(void)
{
	return access("stop", F_OK) == 0;
}

static void allocate_some(int count)
{
	for (int i = 0; i < count; i++) {
		size_t size = 16 + (size_t)i % 100;
		void *p = t_malloc(size);

		t_free(p, size);
	}
}

static NOINLINE pid_t vfork_and_allocate(void)
{
	pid_t pid = vfork();

	if (!pid) {
		allocate_some(500);
		_exit(7);
	}
	return pid;
}

static void hot_vfork(void)
{
	for (int i = 0; i < 3; i++) {
		expect_exit(vfork_and_allocate(), 7);
		allocate_some(100);
	}
	truth_report();
}

static void *allocate_until(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		allocate_some(50);
	return NULL;
}

static void slow_vfork(int is_long)
{
	const struct timespec pause = { 0, 20000000 };
	char *const argv[] = { (char *)"true", NULL };
	int stop = 0;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, allocate_until, &stop));
	while (is_long && access("attached", F_OK) != 0)
		nanosleep(&pause, NULL);
	while (!must_stop()) {
		pid_t pid = vfork();

		if (!pid) {
			do
				nanosleep(&pause, NULL);
			while (is_long && !must_stop());
			execve("/bin/true", argv, environ);
			_exit(99);
		}
		expect_exit(pid, 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(thread, NULL));
}

static void *note_id(void *id)
{
	*(pid_t *)id = gettid();
	return NULL;
}

/* One thread allocates, this one creates threads. */
static void bear_threads(int count)
{
	int stop = 0;
	pthread_t allocating;

	CHECK(!pthread_create(&allocating, NULL, allocate_until, &stop));
	for (int i = 0; i < count; i++) {
		pthread_t thread;
		pid_t id = 0;

		CHECK(!pthread_create(&thread, NULL, note_id, &id));
		CHECK(!pthread_join(thread, NULL));
		CHECK(id > 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(allocating, NULL));
}

/* One after the other: each does @work and leaves with @status. */
static void fork_in_turn(int count, void (*work)(int), int amount, int status)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			work(amount);
			_exit(status);
		}
		expect_exit(pid, status);
	}
}

static void families(void)
{
	pid_t pids[4];

	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			allocate_some(100 * (i + 1));
			fork_in_turn(60, allocate_some, 50, 4);
			_exit(5);
		}
	}
	for (int i = 0; i < 4; i++)
		expect_exit(pids[i], 5);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	truth.has_threads = 1;
	if (!strcmp(mode, "vfork"))
		hot_vfork();
	else if (!strcmp(mode, "vfork-waits"))
		slow_vfork(0);
	else if (!strcmp(mode, "vfork-blocked"))
		slow_vfork(1);
	else if (!strcmp(mode, "threads"))
		fork_in_turn(argc > 2 ? atoi(argv[2]) : 1, bear_threads, 20, 3);
	else if (!strcmp(mode, "fork-trees"))
		families();
	else if (!strcmp(mode, "new-threads"))
		while (!must_stop())
			bear_threads(50);
	else
		CHECK(!"mode");
	print_ok();
	return 0;
}
