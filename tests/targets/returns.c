/*
 * returns N: waits for a byte on standard input, then handles SIGTRAP of two breakpoints of its own and
 * returns from the handler, by the C library's trampoline and by one of its own; and returns from N
 * handlers of another signal. Ends with status 6.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHECK(cond) ((cond) ? (void)0 : _exit(90))
#define RESTORER 0x04000000ul /* SA_RESTORER, which the C library keeps to itself */

/* What rt_sigaction(2) takes. */
struct action {
	void (*handler)(int);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

/* After an end that no known path passes. */
void own_restorer(void);
__asm__(".text\n.type own_restorer_around, @function\n"
	"own_restorer_around:\n\tud2\n"
	".globl own_restorer\nown_restorer:\n\tmov $15, %eax\n\tsyscall\n"
	".size own_restorer_around, . - own_restorer_around");

static void break_twice(void)
{
	__asm__ volatile("int3");
	__asm__ volatile("int3");
}

int main(int argc, char **argv)
{
	const struct action own = {on_signal, RESTORER, own_restorer, 0};
	int signals = argc > 1 ? atoi(argv[1]) : 0;
	char c;

	signal(SIGTRAP, on_signal);
	signal(SIGUSR1, on_signal);
	CHECK(write(1, "ready\n", 6) == 6);
	CHECK(read(0, &c, 1) == 1);
	break_twice();
	CHECK(syscall(SYS_rt_sigaction, SIGTRAP, &own, NULL, sizeof(own.mask)) == 0);
	break_twice();
	CHECK(handled == 4);
	for (int i = 0; i < signals; i++)
		raise(SIGUSR1);
	printf("handled %ld\n", (long)handled);
	return 6;
}
