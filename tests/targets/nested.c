/*
 * Memory that is mapped and touched inside allocation functions, with known callers:
 *
 *	nested [-w]        -w: waits for a line on standard input before the second round
 *
 * The first round (warm) touches the text of all that is called; what the second one (measured)
 * does depends on nothing outside of the program. It allocates from a signal handler that interrupts
 * an allocation function, too, in a second thread, and in a fork.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noinline.h"

#define CHECK(cond) ((cond) ? (void)0 : _exit(90))
#define BIG (300u << 10) /* is mapped */

static char *volatile sink;
static char *guarded;        /* a page that is not there; its handler makes it */
static char *handlers_block;

static NOINLINE void grow(int n)
{
	for (int i = 0; i < n; i++)
		sink = malloc(3000 + (size_t)i);
	NO_TAIL_CALL();
}

static NOINLINE void grow_below(int n) { grow(n); NO_TAIL_CALL(); }
static NOINLINE char *map_block(size_t size) { sink = malloc(size); NO_TAIL_CALL(); return sink; }
static NOINLINE char *map_zeroed(size_t n) { sink = calloc(n, 1000); NO_TAIL_CALL(); return sink; }
static NOINLINE char *map_more(char *p, size_t n) { sink = realloc(p, n); NO_TAIL_CALL(); return sink; }
static NOINLINE char *copy(char *p, size_t n) { sink = realloc(p, n); NO_TAIL_CALL(); return sink; }
static NOINLINE void touch(char *p, size_t n) { memset(p, 1, n); NO_TAIL_CALL(); }

/* Which call touches a page of the stack first depends on where the stack begins. */
static NOINLINE void touch_stack(void)
{
	volatile char room[100000];
	for (size_t i = 0; i < sizeof(room); i += 1000)
		room[i] = 1;
}

static NOINLINE void on_fault(int sig)
{
	(void)sig;
	CHECK(mprotect(guarded, 4096, PROT_READ | PROT_WRITE) == 0);
	handlers_block = map_block(BIG);
	touch(handlers_block, 5000);
}

/* posix_memalign stores its result in @guarded: the handler runs inside of it. */
static NOINLINE void interrupted(void)
{
	CHECK(posix_memalign((void **)(void *)guarded, 64, 20000) == 0);
	CHECK(handlers_block);
	free(handlers_block);
	handlers_block = NULL;
	CHECK(mprotect(guarded, 4096, PROT_NONE) == 0);
}

static NOINLINE void *run_thread(void *arg)
{
	(void)arg;
	touch_stack();
	grow(60);
	touch(map_block(BIG + 8192), 9000);
	return NULL;
}

static NOINLINE void in_thread(void)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, run_thread, NULL) == 0);
	pthread_join(thread, NULL);
}

static NOINLINE void in_child(void)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		grow(150);
		touch(map_block(BIG + 4096), 6000);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static NOINLINE void round_of(int n)
{
	char *p;
	touch_stack();
	grow(n);
	grow_below(n / 2);
	p = map_block(BIG);
	touch(p, BIG);
	p = map_more(p, 2 * BIG);
	free(map_more(p, 3 * BIG));
	free(map_zeroed(BIG / 1000 + 1));
	copy(malloc(9000), 50000);
	interrupted();
	in_thread();
	in_child();
}

static NOINLINE void warm(void) { round_of(20); NO_TAIL_CALL(); }
static NOINLINE void measured(void) { round_of(300); NO_TAIL_CALL(); }

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};
	char c;
	/* sizes that glibc would otherwise adapt to freed blocks */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	mallopt(M_TRIM_THRESHOLD, 128 << 10);
	mallopt(M_TOP_PAD, 0);
	guarded = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(guarded != MAP_FAILED);
	sigaction(SIGSEGV, &sa, NULL);
	warm();
	if (argc > 1 && strcmp(argv[1], "-w") == 0) {
		CHECK(write(1, "ready\n", 6) == 6);
		CHECK(read(0, &c, 1) >= 0);
	}
	measured();
	return 0;
}
