/* A context on mapped memory: the thread, and so the tracer, stays the same. */
#include "base/own_stack.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#define STACK_SIZE (8u << 20)
#define GUARD_SIZE (64u << 10)

struct call {
	int (*fn)(int argc, char **argv);
	int argc, result;
	char **argv;
};

/* makecontext passes ints. */
static void enter(unsigned high, unsigned low)
{
	struct call *c = (struct call *)((uintptr_t)high << 32 | low);

	c->result = c->fn(c->argc, c->argv);
}

static void set_default_size(void)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) != 0)
		return;
	if (pthread_attr_setstacksize(&attr, STACK_SIZE) == 0)
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int own_stack_call(int (*fn)(int argc, char **argv), int argc, char **argv)
{
	struct call c = {.fn = fn, .argc = argc, .argv = argv};
	uintptr_t address = (uintptr_t)&c;
	ucontext_t back, there;
	struct rlimit limit;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_SIZE)
		return fn(argc, argv);
	uint8_t *memory = mmap(NULL, GUARD_SIZE + STACK_SIZE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED ||
	    mprotect(memory + GUARD_SIZE, STACK_SIZE, PROT_READ | PROT_WRITE) != 0 ||
	    getcontext(&there) != 0)
		return fn(argc, argv);
	set_default_size();
	there.uc_stack.ss_sp = memory + GUARD_SIZE;
	there.uc_stack.ss_size = STACK_SIZE;
	there.uc_link = &back;
	makecontext(&there, (void (*)(void))enter, 2, (unsigned)(address >> 32),
		    (unsigned)address);
	if (swapcontext(&back, &there) != 0)
		return fn(argc, argv);
	return c.result;
}
