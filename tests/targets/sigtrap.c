/*
 * sigtrap: breakpoints of the program's own, with a handler of its own; SIGTRAP raised, queued,
 * waited for, and by single steps over a call of malloc.
 */
#include "truth.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

static volatile sig_atomic_t own, sent, steps, wrong;
static volatile uintptr_t expected;

static void on_trap(int number, siginfo_t *info, void *context)
{
	uintptr_t pc = (uintptr_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)number;
	if (info->si_code == SI_TKILL || info->si_code == SI_USER || info->si_code == SI_QUEUE)
		sent++;
	else if (info->si_code == TRAP_TRACE || info->si_code == TRAP_HWBKPT)
		steps++;
	else if (pc == expected)
		own++;
	else
		wrong++;
}

NOINLINE static void break_here(void)
{
	__asm__ volatile("lea 1f(%%rip), %%rax\n\t"
			 "mov %%rax, %0\n\t"
			 "int3\n"
			 "1:"
			 : "=m"(expected)
			 :
			 : "rax", "memory");
	NO_TAIL_CALL();
}

static void wait_for_it(void)
{
	struct timespec ts = { 5, 0 };
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	CHECK(!kill(getpid(), SIGTRAP));
	CHECK(sigtimedwait(&set, &info, &ts) == SIGTRAP && info.si_pid == getpid());
	CHECK(!sigprocmask(SIG_UNBLOCK, &set, NULL));
}

/* The trap flag set around a short piece of own code. */
static void single_step(void)
{
	__asm__ volatile("pushfq\n\t"
			 "orq $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "nop\n\tnop\n\tnop\n\tnop\n\t"
			 "pushfq\n\t"
			 "andq $~0x100, (%%rsp)\n\t"
			 "popfq"
			 :
			 :
			 : "memory", "cc");
}

int main(void)
{
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_sigaction = on_trap;
	sa.sa_flags = SA_SIGINFO;
	CHECK(!sigaction(SIGTRAP, &sa, NULL));
	for (int i = 0; i < 50; i++) {
		void *p = t_malloc(64);

		break_here();
		t_free(p, 64);
		CHECK(own == i + 1);
	}
	for (int i = 0; i < 10; i++) {
		CHECK(!raise(SIGTRAP));
		t_free(t_malloc(10), 10);
		CHECK(sent == i + 1);
	}
	wait_for_it();
	CHECK(sent == 10);
	single_step();
	CHECK(steps == 7);
	CHECK(!wrong);
	truth_report();
	print_ok();
	return 0;
}
