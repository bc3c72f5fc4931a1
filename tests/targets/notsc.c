/*
 * notsc N: forbids itself to read the CPU's counter (PR_SET_TSC), and then makes N pairs of malloc
 * and free. An own handler of SIGSEGV counts the faults that it sees: 1, of its own instruction.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

static sigjmp_buf back;
static volatile sig_atomic_t faults;

static void on_fault(int sig)
{
	(void)sig;
	faults++;
	siglongjmp(back, 1);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 100000;

	signal(SIGSEGV, on_fault);
	for (long i = 0; i < n; i++) {
		if (i == n / 2)
			prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
		void *volatile p = malloc(16 + (size_t)(i % 100));
		free(p);
	}
	if (!sigsetjmp(back, 1))
		__asm__ volatile("rdtsc" : : : "eax", "edx");
	printf("faults %d\n", (int)faults);
	return 0;
}
