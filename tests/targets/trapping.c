/*
 * Functions whose first instruction raises a signal, directly behind another function. The handler
 * allocates, then continues at the second instruction:
 *
 *	trapping [COUNT]    each function COUNT times (1)
 *
 * SIGTRAP is not blocked in the handler: ptmem.1, CAVEATS. The blocks, one for each signal, are never freed.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "noinline.h"

#define SIZE 5000

/* FIRST takes two bytes. */
#define FUNCTION(name, first) \
	__asm__(".pushsection .text\n" \
		".type before_" #name ", @function\n" \
		"before_" #name ": .cfi_startproc\n\tret\n.cfi_endproc\n" \
		".size before_" #name ", . - before_" #name "\n" \
		".globl " #name "\n.type " #name ", @function\n" \
		#name ": .cfi_startproc\n\t" first "\n\tret\n.cfi_endproc\n" \
		".size " #name ", . - " #name "\n.popsection"); \
	void name(void)

FUNCTION(illegal, "ud2");                 /* SIGILL */
FUNCTION(fault, "mov (%rax), %eax");      /* SIGSEGV: rax is 0 */
FUNCTION(breakpoint, "int3\n\tnop");      /* SIGTRAP: after the instruction */
static void *volatile last;

static NOINLINE void allocate(void)
{
	last = malloc(SIZE);
	memset(last, 1, SIZE);
}

static NOINLINE void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	(void)info;
	allocate();
	if (sig != SIGTRAP)
		uc->uc_mcontext.gregs[REG_RIP] += 2;
}

static NOINLINE void call(void (*f)(void))
{
	long zero = 0;
	__asm__ volatile("call *%1" : "+a"(zero) : "r"(f) : "memory", "cc");
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_NODEFER};
	int count = argc > 1 ? atoi(argv[1]) : 1;
	if (sigaction(SIGILL, &sa, NULL) != 0 || sigaction(SIGSEGV, &sa, NULL) != 0 ||
	    sigaction(SIGTRAP, &sa, NULL) != 0)
		return 90;
	for (int i = 0; i < count; i++) {
		call(illegal);
		call(fault);
		call(breakpoint);
	}
	_exit(0);
}
