/*
 * leaks [wait] [freed]: blocks with known results. A function's name is the expected result of a
 * leak check for the blocks that it allocates:
 *
 *	reach_*     still reachable
 *	lost_*      definitely lost       follow_*  indirectly lost
 *	inside_*    possibly lost
 *
 * Exits while its threads still hold their blocks. wait: each step follows a byte from standard
 * input and is answered by a line. freed: also a block to which only freed memory points.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "await_call.h"
#include "noinline.h"

struct node {
	struct node *next;
	char data[40];
};

/* Pointers are passed encoded, so that no copy remains. */
#define HIDE UINT64_C(0x5a5a5a5a5a5a5a5a)
typedef uint64_t hidden;

static hidden hide(void *p)
{
	return (uint64_t)p ^ HIDE;
}

#define SHOW(h) ((void *)((h) ^ HIDE))

/* Allocations, each returning the encoded address. */
#define MAKER(name, size) NOINLINE static hidden name(void) \
	{ struct node *n = malloc(size); memset(n, 0, size); hidden h = hide(n); n = NULL; \
	  __asm__ volatile("" : "+r"(n) : : "memory"); return h; }

MAKER(reach_global, 1000)
MAKER(reach_global_child, 1010)
MAKER(inside_global, 2000)
MAKER(inside_child, 2010)
MAKER(lost_plain, 64)
MAKER(lost_head, 48)
MAKER(follow_list, 48)
MAKER(lost_cycle, 100)
MAKER(follow_cycle, 104)
MAKER(lost_past_end, 80)
MAKER(reach_tls, 3000)
MAKER(reach_register, 3010)
MAKER(reach_stack, 3020)
MAKER(reach_ignored, 3030)
MAKER(reach_library, 3040)
MAKER(reach_main_stack, 3050)
MAKER(freed_holder, 900)
MAKER(only_in_freed, 3070)
MAKER(holder, 512) /* --ignore-fn=holder */

static struct node *global;
static char *interior, *past_end;
static void **holders; /* address of the ignored block; itself in no block */
static __thread struct node *local;
static pthread_barrier_t placed;

NOINLINE static void wipe_stack(void)
{
	volatile char scratch[16384];
	memset((char *)scratch, 0, sizeof(scratch));
}

NOINLINE static void place_globals(void)
{
	global = SHOW(reach_global());
	global->next = SHOW(reach_global_child());
	interior = (char *)SHOW(inside_global()) + 24;
	((struct node *)(interior - 24))->next = SHOW(inside_child());
	lost_plain();
	past_end = (char *)SHOW(lost_past_end()) + 80;
}

NOINLINE static void place_lost(void)
{
	struct node *list = NULL;
	for (int i = 0; i < 9; i++) {
		struct node *n = SHOW(follow_list());
		n->next = list;
		list = n;
	}
	struct node *head = SHOW(lost_head());
	head->next = list;
	/* the lower of the two is the leader: it is allocated first */
	struct node *a = SHOW(lost_cycle()), *b = SHOW(follow_cycle());
	if (a > b)
		abort();
	a->next = b;
	b->next = a;
}

NOINLINE static void place_ignored(void)
{
	struct node *n = SHOW(holder());
	n->next = SHOW(reach_ignored());
	holders = NULL;
}

NOINLINE static void place_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void **held = library ? dlsym(library, "held") : NULL;
	if (!held) {
		fprintf(stderr, "%s\n", dlerror());
		exit(90);
	}
	*held = SHOW(reach_library());
}

NOINLINE static void place_freed(void)
{
	struct node *n = SHOW(freed_holder());
	*(void *volatile *)(n->data + 24) = SHOW(only_in_freed());
	free(n);
}

static void *thread_tls(void *own_id)
{
	*(pid_t *)own_id = gettid();
	local = SHOW(reach_tls());
	wipe_stack();
	pthread_barrier_wait(&placed);
	pause();
	return local;
}

static void *thread_stack(void *own_id)
{
	*(pid_t *)own_id = gettid();
	struct node *volatile mine = SHOW(reach_stack());
	wipe_stack();
	pthread_barrier_wait(&placed);
	pause();
	return mine;
}

/* The address is only in a register, encoded until the thread waits forever. */
static void *thread_register(void *own_id)
{
	*(pid_t *)own_id = gettid();
	hidden h = reach_register();
	wipe_stack();
	pthread_barrier_wait(&placed);
	__asm__ volatile("xorq %1, %0\n1:\tmovl %2, %%eax\n\tsyscall\n\tjmp 1b"
			 : "+b"(h) : "r"(HIDE), "i"(SYS_pause) : "rax", "rcx", "r11", "memory");
	return NULL;
}

static void step(int waits, const char *what)
{
	char c;
	if (waits && read(STDIN_FILENO, &c, 1) != 1)
		exit(0);
	if (waits && write(STDOUT_FILENO, what, strlen(what)) < 0)
		exit(91);
}

int main(int argc, char **argv)
{
	int waits = 0, freed = 0;
	static pid_t id[3];
	pthread_t thread;
	void *(*const threads[])(void *) = {thread_tls, thread_stack, thread_register};
	for (int i = 2; i < argc; i++) {
		waits |= strcmp(argv[i], "wait") == 0;
		freed |= strcmp(argv[i], "freed") == 0;
	}
	step(waits, "begun\n");
	pthread_barrier_init(&placed, NULL, 4);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, threads[i], &id[i]);
	pthread_barrier_wait(&placed);
	place_globals();
	place_lost();
	place_ignored();
	place_library(argv[1]);
	if (freed)
		place_freed();
	struct node *volatile mine = SHOW(reach_main_stack());
	wipe_stack();
	for (int i = 0; i < 3; i++)
		await_call(id[i], PAUSE_CALL);
	step(waits, "placed\n");
	step(waits, "done\n");
	exit(mine == NULL);
}
