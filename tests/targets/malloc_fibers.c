/*
 * malloc_fibers [CALLS]: the program's own malloc switches to another fiber before it returns. So calls of one
 * thread are left and resumed in any order; the program ends normally. Before that it makes CALLS (10000), until pads
 * have taken the place of breakpoints.
 */
#include "truth.h"

#include <sys/mman.h>
#include <ucontext.h>

#define STACK_SIZE (256 * 1024)
#define TURNS 100

void *__libc_malloc(size_t size);

static ucontext_t outside, inside;
static volatile int takes_turns, has_ended;

NOINLINE void *malloc(size_t size)
{
	void *p = __libc_malloc(size);

	if (takes_turns && size == 50)
		swapcontext(&inside, &outside);
	return p;
}

static void fiber(void)
{
	for (int i = 0; i < TURNS; i++) {
		void *p = malloc(50);

		CHECK(p);
		free(p);
	}
	has_ended = 1;
}

NOINLINE static void call_often(uint64_t calls)
{
	for (uint64_t i = 0; i < calls; i++)
		t_free(t_malloc(10), 10);
}

int main(int argc, char **argv)
{
	char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile int turns = 0;

	CHECK(stack != MAP_FAILED);
	call_often(argument(argc, argv, 1, 10000));
	CHECK(!getcontext(&inside));
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK_SIZE;
	inside.uc_link = &outside;
	makecontext(&inside, fiber, 0);
	takes_turns = 1;
	for (; !has_ended; turns = turns + 1) {
		CHECK(!swapcontext(&outside, &inside));
		for (int i = 0; i < 10; i++)
			t_free(t_malloc(77), 77);
	}
	CHECK(turns == TURNS + 1);
	print_ok();
	return 0;
}
