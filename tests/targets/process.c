/*
 * process MODE: one process creates another; each prints its own truth, so that TRUTH holds one
 * `expect:` line for each with its pid in front (`pid N expect: ...`).
 *	fork     the child inherits blocks, frees some, allocates others; both continue
 *	nested-forks  a fork in a fork in a fork
 *	vfork    the child allocates in the parent's memory, then runs true
 *	spawn    posix_spawn of true;  system, popen: by the shell
 *	clone-vm  clone(CLONE_VM) without CLONE_THREAD, which allocates and leaves
 *	exec     executes itself again (mode `image`); the truth is printed before
 *	execthread  the same by another thread than the first
 *	threads  forks while four threads allocate
 *	fork-in-handler  a signal handler that interrupts allocation functions forks; the child returns from it into
 *	         the call, too;  fork-in-handler-altstack  the same on an alternate signal stack
 */
#include "children.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

extern char **environ;

static void report(void)
{
	struct text t = { { 0 }, 0 };

	text_number(&t, "pid ", (uint64_t)getpid());
	truth_write(&t);
	truth_report();
}

static void fork_once(void)
{
	void *shared = t_malloc(1000), *kept = t_malloc(50);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		t_free(shared, 1000);
		kept = t_realloc(kept, 50, 5000);
		for (int i = 0; i < 100; i++)
			t_free(t_malloc(20), 20);
		t_malloc(7777);
		report();
		_exit(5);
	}
	t_malloc(88);
	expect_exit(pid, 5);
	t_free(shared, 1000);
	report();
}

static void deep(unsigned level)
{
	pid_t pid;

	t_malloc(100 + level);
	if (level == 3) {
		report();
		return;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		deep(level + 1);
		exit(0);
	}
	expect_exit(pid, 0);
	report();
}

static void vfork_once(void)
{
	char *const argv[] = { (char *)"true", NULL };
	void *volatile from_child = NULL;
	void *volatile p = t_malloc(300);
	pid_t pid = vfork();

	if (!pid) {
		from_child = t_malloc(4000);
		t_free(p, 300);
		execve("/bin/true", argv, environ);
		_exit(99);
	}
	expect_exit(pid, 0);
	t_free(t_malloc(10), 10);
	t_free(from_child, 4000);
	report();
}

static void spawn(void)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)"exit 6", NULL };
	pid_t pid;

	t_malloc(100);
	for (int i = 0; i < 3; i++) {
		CHECK(!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
		expect_exit(pid, 6);
	}
	t_malloc(200);
	report();
}

static void by_shell(void)
{
	int status = system("exit 3");

	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	t_malloc(100);
	status = system("kill -9 $$");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == 9);
	report();
}

static void by_pipe(void)
{
	FILE *pipe = popen("echo hello; exit 4", "r");
	char line[20];
	int status;

	CHECK(pipe && fgets(line, sizeof(line), pipe) && !strcmp(line, "hello\n"));
	status = pclose(pipe);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 4);
	t_malloc(100);
	report();
}

static int cloned(void *arg)
{
	void **p = arg;

	for (int i = 0; i < 50; i++)
		t_free(t_malloc(30), 30);
	t_free(p[0], 500);
	p[1] = t_malloc(600);
	return 9;
}

static void clone_vm(void)
{
	char *stack = mmap(NULL, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *blocks[2] = { t_malloc(500), NULL };
	pid_t pid;

	CHECK(stack != MAP_FAILED);
	pid = clone(cloned, stack + (1 << 18), CLONE_VM | SIGCHLD, blocks);
	expect_exit(pid, 9);
	CHECK(blocks[1]);
	t_free(blocks[1], 600);
	report();
}

static void exec_self(void)
{
	char *const argv[] = { (char *)"process", (char *)"image", NULL };

	t_malloc(1111);
	report();
	execve("/proc/self/exe", argv, environ);
	CHECK(!"exec failed");
}

static void *exec_in_thread(void *unused)
{
	exec_self();
	return unused;
}

static void exec_by_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, exec_in_thread, NULL));
	pause();
}

static void image(void)
{
	t_free(t_malloc(10), 10);
	t_malloc(2222);
	report();
	exit(11);
}

static void *allocate_on(void *stop)
{
	for (int i = 0; i < 500 || !__atomic_load_n((int *)stop, __ATOMIC_RELAXED); i++) {
		void *p = t_malloc(16 + (size_t)i % 100);

		t_free(p, 16 + (size_t)i % 100);
	}
	return NULL;
}

/* The child has one thread; blocks of the others are not freed there. */
static void fork_among_threads(void)
{
	pthread_t threads[4];
	int stop = 0;

	truth.has_threads = 1;
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, allocate_on, &stop));
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid) {
			free(malloc(10));
			_exit(5);
		}
		expect_exit(pid, 5);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	report();
}

/* ---- forks in a signal handler ---- */

#define HANDLER_FORKS 40
#define HELD 16

static volatile sig_atomic_t forks, is_child;
static pid_t children[HANDLER_FORKS];

static void fork_in_handler(int number)
{
	int error = errno;
	pid_t pid;

	(void)number;
	if (is_child || forks == HANDLER_FORKS)
		return;
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		children[forks++] = pid;
	else
		is_child = 1;
	errno = error;
}

static void catch_alarm(int has_own_stack)
{
	static unsigned char alternate[64 * 1024] __attribute__((aligned(16)));
	const struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction sa;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = fork_in_handler;
	sa.sa_flags = SA_RESTART | (has_own_stack ? SA_ONSTACK : 0);
	CHECK(!sigaltstack(&stack, NULL));
	CHECK(!sigaction(SIGALRM, &sa, NULL));
	CHECK(!setitimer(ITIMER_REAL, &every, NULL));
}

/* One call of each kind; held blocks stay live. */
static void allocate_mixed(void *held[HELD], size_t sizes[HELD], unsigned i)
{
	unsigned k = i % HELD;
	size_t size = 20 + i % 300;

	if (i % 3 == 0) {
		held[k] = t_realloc(held[k], sizes[k], size);
	} else {
		t_free(held[k], sizes[k]);
		held[k] = i % 3 == 1 ? t_malloc(size) : t_calloc(1, size);
	}
	sizes[k] = size;
	t_free(t_memalign(64, size), size);
	t_free(t_malloc(size), size);
}

static void fork_by_handler(int has_own_stack)
{
	void *held[HELD] = { 0 };
	size_t sizes[HELD] = { 0 };
	int token[2];
	unsigned i = 0;
	char c = 0;

	CHECK(!pipe(token) && write(token[1], &c, 1) == 1);
	for (; i < 3000; i++)
		allocate_mixed(held, sizes, i);
	catch_alarm(has_own_stack);
	while (forks < HANDLER_FORKS && !is_child)
		allocate_mixed(held, sizes, i++);
	for (unsigned n = 0; n < 100; n++)
		allocate_mixed(held, sizes, i++);
	/* a report is two lines: one process at a time; signals may still come */
	while (read(token[0], &c, 1) != 1)
		CHECK(errno == EINTR);
	report();
	CHECK(write(token[1], &c, 1) == 1);
	if (is_child)
		_exit(5);
	for (int n = 0; n < HANDLER_FORKS; n++)
		expect_exit(children[n], 5);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "fork"))
		fork_once();
	else if (!strcmp(mode, "nested-forks"))
		deep(0);
	else if (!strcmp(mode, "vfork"))
		vfork_once();
	else if (!strcmp(mode, "spawn"))
		spawn();
	else if (!strcmp(mode, "system"))
		by_shell();
	else if (!strcmp(mode, "popen"))
		by_pipe();
	else if (!strcmp(mode, "clone-vm"))
		clone_vm();
	else if (!strcmp(mode, "exec"))
		exec_self();
	else if (!strcmp(mode, "execthread"))
		exec_by_thread();
	else if (!strcmp(mode, "image"))
		image();
	else if (!strcmp(mode, "threads"))
		fork_among_threads();
	else if (!strcmp(mode, "fork-in-handler") || !strcmp(mode, "fork-in-handler-altstack"))
		fork_by_handler(!strcmp(mode, "fork-in-handler-altstack"));
	else
		CHECK(!"mode");
	print_ok();
	return 0;
}
