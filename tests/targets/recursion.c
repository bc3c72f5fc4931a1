/*
 * Calls of malloc thousands of frames deep, on stacks that may differ in any frame: each frame is
 * randomly of left() or of right(), which are identical.
 *
 *	recursion DEPTH MODE...
 *
 *	varied     down to the bottom again and again, and back up to various depths between
 *	longjmp    out of the bottom to the middle, and down another way
 *	handler    a signal handler on a stack of its own allocates at the bottom
 *	fork       children continue at the bottom, deeper and back up
 *	interrupt  a signal handler forks in the middle of such calls, and both processes continue with them
 *	threads    more threads at a time than there are deep caches
 *	announced  blocks are announced at the bottom, instead of calls
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "children.h"
#include "noinline.h"
#include "ptmem.h"

#define THREADS 18

struct way {
	uint64_t random;
	void (*at_bottom)(struct way *w);
	void (*at_middle)(struct way *w, unsigned int depth);
	unsigned int middle; /* depth left where at_middle is called */
	jmp_buf jump;
	int turns;
};

static unsigned int depth_wanted;

static uint64_t next_random(struct way *w)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return w->random >> 33;
}

static NOINLINE void allocate(size_t size)
{
	void *volatile block = malloc(size);
	(void)block; /* stays */
	NO_TAIL_CALL();
}

static char announced[4096];
static unsigned int announcements;

static NOINLINE void announce(size_t size)
{
	PTMEM_ALLOC(announced + __atomic_fetch_add(&announcements, 1, __ATOMIC_RELAXED), size);
	NO_TAIL_CALL();
}

static NOINLINE void left(struct way *w, unsigned int depth);
static NOINLINE void right(struct way *w, unsigned int depth);

static NOINLINE void go_on(struct way *w, unsigned int depth)
{
	if (depth == 0)
		w->at_bottom(w);
	else if (next_random(w) % 2)
		left(w, depth - 1);
	else
		right(w, depth - 1);
	NO_TAIL_CALL();
}

static NOINLINE void left(struct way *w, unsigned int depth)
{
	volatile char room[16];
	room[0] = 1;
	if (w->at_middle && depth == w->middle)
		w->at_middle(w, depth);
	else
		go_on(w, depth);
	room[1] = room[0];
}

static NOINLINE void right(struct way *w, unsigned int depth)
{
	volatile char room[16];
	room[0] = 2;
	if (w->at_middle && depth == w->middle)
		w->at_middle(w, depth);
	else
		go_on(w, depth);
	room[1] = room[0];
}

static void allocate_some(struct way *w)
{
	for (int i = 0; i < 3; i++)
		allocate(16 + next_random(w) % 100);
}

/* --- varied --- */

static void twice_from_here(struct way *w, unsigned int depth)
{
	w->at_middle = NULL;
	for (int i = 0; i < 2; i++) {
		allocate(200);
		go_on(w, depth);
	}
	w->at_middle = twice_from_here;
}

static NOINLINE void run_varied(struct way *w)
{
	static const unsigned int middles[] = {1, 40, 1000, 4090, 4100};
	w->at_bottom = allocate_some;
	w->at_middle = twice_from_here;
	for (size_t i = 0; i < sizeof(middles) / sizeof(middles[0]); i++) {
		w->middle = middles[i];
		go_on(w, depth_wanted);
		go_on(w, middles[i] - 1);
	}
}

/* --- longjmp --- */

static void leap(struct way *w)
{
	allocate_some(w);
	if (++w->turns % 12)
		longjmp(w->jump, 1);
}

static void land(struct way *w, unsigned int depth)
{
	allocate(300);
	w->at_middle = NULL;
	setjmp(w->jump);
	go_on(w, depth);
}

static NOINLINE void run_longjmp(struct way *w)
{
	w->at_bottom = leap;
	w->middle = depth_wanted / 2;
	for (int i = 0; i < 2; i++) {
		w->at_middle = land;
		go_on(w, depth_wanted);
	}
}

/* --- handler --- */

static void on_signal(int sig)
{
	(void)sig;
	allocate(400);
	allocate(401);
}

static void interrupted(struct way *w)
{
	allocate_some(w);
	raise(SIGUSR1);
	allocate_some(w);
}

static NOINLINE void run_handler(struct way *w)
{
	const stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	w->at_bottom = interrupted;
	for (int i = 0; i < 3; i++)
		go_on(w, depth_wanted);
}

/* --- fork --- */

static void divide(struct way *w)
{
	allocate_some(w);
	pid_t child = fork();
	if (child == 0) {
		allocate(500);
		w->at_bottom = allocate_some;
		go_on(w, 10);
		go_on(w, 0);
		exit(0);
	}
	expect_exit(child, 0);
	allocate(501);
}

static NOINLINE void run_fork(struct way *w)
{
	w->at_bottom = divide;
	for (int i = 0; i < 2; i++)
		go_on(w, depth_wanted);
}

/* --- interrupt --- */

#define FORKS 20

static volatile sig_atomic_t forks, is_child;

static void on_alarm(int sig)
{
	pid_t child = forks < FORKS ? fork() : 1;
	(void)sig;
	if (child == 0)
		is_child = 1;
	else if (forks < FORKS)
		expect_exit(child, 0);
	forks++;
}

static void be_interrupted(struct way *w)
{
	while (forks < FORKS && !is_child)
		free(malloc(next_random(w) % 100));
	if (!is_child)
		return;
	w->at_bottom = allocate_some;
	go_on(w, 0);
	go_on(w, 10);
	exit(0);
}

static NOINLINE void run_interrupt(struct way *w)
{
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
	sigaction(SIGALRM, &action, NULL);
	w->at_bottom = allocate_some;
	go_on(w, depth_wanted); /* the cache exists now */
	setitimer(ITIMER_REAL, &often, NULL);
	w->at_bottom = be_interrupted;
	go_on(w, depth_wanted);
	setitimer(ITIMER_REAL, &never, NULL);
}

/* --- threads --- */

static pthread_barrier_t all_are_deep;

static void wait_for_all(struct way *w)
{
	announce(700); /* some of which are the first to request a deep cache, and get none */
	allocate(601);
	allocate(602);
	pthread_barrier_wait(&all_are_deep);
	allocate(600);
}

static void *run_thread(void *random)
{
	struct way w = {.random = (uintptr_t)random, .at_bottom = wait_for_all};
	for (int i = 0; i < 2; i++)
		go_on(&w, depth_wanted);
	return NULL;
}

static NOINLINE void run_threads(struct way *w)
{
	pthread_t thread[THREADS];
	(void)w;
	pthread_barrier_init(&all_are_deep, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, run_thread, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* --- announced --- */

static void announce_many(struct way *w)
{
	(void)w;
	for (size_t i = 0; i < 50; i++)
		announce(i);
}

static NOINLINE void run_announced(struct way *w)
{
	w->at_bottom = announce_many;
	for (int i = 0; i < 2; i++)
		go_on(w, depth_wanted);
}

static void run(const char *mode)
{
	static const struct {
		const char *name;
		void (*run)(struct way *w);
	} modes[] = {
		{"varied", run_varied}, {"longjmp", run_longjmp}, {"handler", run_handler},
		{"fork", run_fork}, {"interrupt", run_interrupt}, {"threads", run_threads},
		{"announced", run_announced},
	};
	struct way w = {.random = 1};
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, mode) == 0)
			modes[i].run(&w);
	}
}

int main(int argc, char **argv)
{
	depth_wanted = argc > 1 ? (unsigned int)atoi(argv[1]) : 0;
	for (int i = 2; i < argc; i++)
		run(argv[i]);
	puts("OK");
	return 0;
}
