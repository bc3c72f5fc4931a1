/*
 * Signals with values, sent to threads that allocate all the time: each must come once,
 * in order, with its own siginfo, whatever other signals arrive. SIGTRAP is among
 * them: sent to the process (the kernel drops one that is sent to a thread with a pending
 * breakpoint), and as a breakpoint of the program's own. Prints OK, else what was wrong.
 *
 *	queued SECONDS
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

struct worker {
	pthread_t thread;
	pid_t tid;
	atomic_int sent, came;   /* of the realtime signal */
	atomic_long own_breakpoints, own_breakpoints_met;
};

static struct worker workers[THREADS];
static atomic_int is_over, wrong, started, trap_came;
static __thread struct worker *me;

static void complain(const char *what, long got, long want)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%s: %ld, not %ld\n", what, got, want);
	wrong = 1;
	if (write(2, line, (size_t)n) != n)
		_exit(3);
}

static void expect(const char *what, long got, long want)
{
	if (got != want)
		complain(what, got, want);
}

static void on_queued(int sig, siginfo_t *info, void *context)
{
	int saved = errno;
	(void)sig, (void)context;
	expect("si_code of a queued signal", info->si_code, SI_QUEUE);
	expect("si_pid of a queued signal", info->si_pid, getpid());
	expect("value of a queued signal", info->si_value.sival_int, me->came + 1);
	me->came++;
	errno = saved;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	if (info->si_code == SI_KERNEL) {
		if (me)
			me->own_breakpoints_met++;
		return;
	}
	expect("si_code of a queued SIGTRAP", info->si_code, SI_QUEUE);
	expect("value of a queued SIGTRAP", info->si_value.sival_int, trap_came + 1);
	trap_came++;
}

static void *work(void *arg)
{
	void *block[32] = {0};
	unsigned n = 0;
	me = arg;
	me->tid = (pid_t)syscall(SYS_gettid);
	started++;
	while (!is_over) {
		unsigned i = n++ * 7 % 32;
		free(block[i]);
		block[i] = malloc(16 + n % 100);
		if (n % 4096 == 0) {
			me->own_breakpoints++;
			__asm__ volatile("int3");
		}
	}
	for (unsigned i = 0; i < 32; i++)
		free(block[i]);
	return NULL;
}

static void queue(struct worker *w, int sig, int value)
{
	siginfo_t info;
	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	while (syscall(SYS_rt_tgsigqueueinfo, getpid(), w->tid, sig, &info) != 0 && errno == EAGAIN)
		usleep(1000);
}

static void send_trap(int value)
{
	sigqueue(getpid(), SIGTRAP, (union sigval){.sival_int = value});
}

static void catch_signal(int sig, void (*fn)(int, siginfo_t *, void *))
{
	struct sigaction action = {.sa_sigaction = fn, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigaction(sig, &action, NULL);
}

static void wait_for(const char *what, atomic_int *came, int sent)
{
	for (int i = 0; i < 5000 && *came < sent; i++)
		usleep(1000);
	expect(what, *came, sent);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int traps = 0;
	struct timespec begin, now;
	catch_signal(SIGRTMIN, on_queued);
	catch_signal(SIGTRAP, on_trap);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	while (started < THREADS)
		usleep(1000);
	do {
		for (int i = 0; i < THREADS; i++)
			queue(&workers[i], SIGRTMIN, ++workers[i].sent);
		if (trap_came == traps) /* a second would not be queued after it */
			send_trap(++traps);
		usleep(500);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((double)(now.tv_sec - begin.tv_sec) + (double)(now.tv_nsec - begin.tv_nsec) / 1e9 < seconds);
	for (int i = 0; i < THREADS; i++)
		wait_for("queued signals that came", &workers[i].came, workers[i].sent);
	wait_for("SIGTRAPs that came", &trap_came, traps);
	is_over = 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		expect("own breakpoints met", workers[i].own_breakpoints_met, workers[i].own_breakpoints);
	}
	if (!wrong)
		puts("OK");
	return wrong;
}
