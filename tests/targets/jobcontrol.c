/*
 * jobcontrol: a child that allocates is stopped and continued by each of the four stop signals;
 * its parent gets the expected results from waitpid, and the child does nothing while it is
 * stopped.
 */
#include "truth.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static volatile uint64_t *progress;

static void nap(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&t, &t))
		CHECK(errno == EINTR);
}

static void work(void)
{
	for (;;) {
		free(malloc(100));
		++*progress;
	}
}

static void wait_for_progress(void)
{
	uint64_t before = *progress;

	for (int i = 0; i < 5000 && *progress < before + 5; i++)
		nap(1);
	CHECK(*progress >= before + 5);
}

static void stop_and_continue(pid_t pid, int number)
{
	uint64_t before;
	int status;

	wait_for_progress();
	CHECK(!kill(pid, number));
	CHECK(waitpid(pid, &status, WUNTRACED) == pid);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == number);
	before = *progress;
	nap(50);
	CHECK(*progress == before);
	CHECK(waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == 0); /* reported once */
	CHECK(!kill(pid, SIGCONT));
	CHECK(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
	wait_for_progress();
}

int main(void)
{
	static const int stops[] = { SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU };
	int status;
	pid_t pid;

	progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(progress != MAP_FAILED);
	/* An orphaned process group ignores SIGTSTP: the child gets its own group in this session. */
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		setpgid(0, 0);
		work();
	}
	for (int i = 0; i < 4; i++)
		stop_and_continue(pid, stops[i]);
	/* Stopped, then killed. */
	CHECK(!kill(pid, SIGSTOP));
	CHECK(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	CHECK(!kill(pid, SIGTERM));
	CHECK(!kill(pid, SIGCONT));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	truth_report();
	print_ok();
	return 0;
}
