/*
 * apart HOW N: `even` and `odd` take turns N times. Each has a block of its own size allocated on
 * another stack than theirs, and goes on at once, so that its own stack is soon another one's.
 *
 *	signals   in the handler of a signal, which has an alternate stack
 *	switched  by a function that sets the stack pointer, as run-time systems do; it has CFI
 */
#include "truth.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#define STACK_SIZE (64 * 1024)
#define EVEN 2000
#define ODD 1001

static int size, by_signal;
static char *stack;

void call_on(char *stack_end, void (*fn)(void));
__asm__(".text\n"
	".globl call_on\n"
	".type call_on, @function\n"
	"call_on:\n"
	"	.cfi_startproc\n"
	"	push	%rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset 6, -16\n"
	"	mov	%rsp, %rbp\n"
	"	.cfi_def_cfa_register 6\n"
	"	mov	%rdi, %rsp\n"
	"	call	*%rsi\n"
	"	mov	%rbp, %rsp\n"
	"	pop	%rbp\n"
	"	.cfi_def_cfa 7, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size call_on, . - call_on\n");

NOINLINE static void allocate(void)
{
	t_malloc((size_t)size);
}

static void on_signal(int number)
{
	(void)number;
	allocate();
}

INLINE void allocate_elsewhere(int n)
{
	size = n;
	if (by_signal)
		CHECK(!raise(SIGUSR1));
	else
		call_on(stack + STACK_SIZE, allocate);
}

NOINLINE static void even(void)
{
	allocate_elsewhere(EVEN);
	__asm__ volatile("");
}

NOINLINE static void odd(void)
{
	volatile char room[200];

	room[0] = room[199] = 1;
	allocate_elsewhere(ODD);
	room[0] = 2;
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t other = {.ss_size = STACK_SIZE};
	int count = argc > 2 ? atoi(argv[2]) : 1000;

	by_signal = argc > 1 && !strcmp(argv[1], "signals");
	stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(stack != MAP_FAILED);
	other.ss_sp = stack;
	CHECK(!sigaltstack(&other, NULL) && !sigaction(SIGUSR1, &sa, NULL));
	for (int i = 0; i < count; i++)
		(i % 2 ? odd : even)();
	return 0;
}
