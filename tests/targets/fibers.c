/*
 * fibers: ucontext coroutines on malloc'd and static stacks; each allocates, yields in the middle
 * and frees another one's blocks; longjmp out of a handler.
 */
#include "truth.h"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#define FIBERS 6
#define STACK_SIZE (64 * 1024)

static ucontext_t main_context, contexts[FIBERS];
static void *handed[FIBERS];
static sigjmp_buf back;

static void yield(int self)
{
	CHECK(!swapcontext(&contexts[self], &main_context));
}

NOINLINE static void nested(int self, int depth)
{
	void *p = t_malloc((size_t)(100 + depth));

	if (depth)
		nested(self, depth - 1);
	else
		yield(self);
	t_free(p, (uint64_t)(100 + depth));
	NO_TAIL_CALL();
}

static void fiber(int self)
{
	for (int round = 0; round < 10; round++) {
		int other = (self + 1) % FIBERS;

		nested(self, 10);
		handed[self] = t_malloc(500);
		yield(self);
		t_free(handed[other], 500);
		handed[other] = NULL;
		yield(self);
	}
}

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void jumps(void)
{
	volatile int i;

	CHECK(signal(SIGUSR1, jump) != SIG_ERR);
	for (i = 0; i < 50; i++) {
		void *volatile p = t_malloc(40);

		if (!sigsetjmp(back, 1))
			raise(SIGUSR1);
		t_free(p, 40);
	}
}

int main(void)
{
	void *stacks[FIBERS];

	for (int i = 0; i < FIBERS; i++) {
		stacks[i] = t_malloc(STACK_SIZE);
		CHECK(!getcontext(&contexts[i]));
		contexts[i].uc_stack.ss_sp = stacks[i];
		contexts[i].uc_stack.ss_size = STACK_SIZE;
		contexts[i].uc_link = &main_context;
		makecontext(&contexts[i], (void (*)(void))fiber, 1, i);
	}
	for (int round = 0; round < 31; round++) /* 3 yields a round, and the return */
		for (int i = 0; i < FIBERS; i++)
			CHECK(!swapcontext(&main_context, &contexts[i]));
	for (int i = 0; i < FIBERS; i++)
		t_free(stacks[i], STACK_SIZE);
	jumps();
	CHECK(truth.live == 0);
	truth_report();
	print_ok();
	return 0;
}
