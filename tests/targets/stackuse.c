/*
 * stackuse MODE: a program that reports its stack use at each call of malloc.
 *
 *	stack: SIZE BYTES
 *
 * in the file named by TRUTH: when SIZE bytes are allocated (each size is asked for once), the
 * stacks of all threads hold BYTES: by each thread, from its first stack pointer down to the one
 * at its last call of malloc. The first stack pointer of main points to argc; of a thread it is
 * the stack pointer in its outermost frame, as the unwinder of libgcc finds it.
 *
 *	plain         calls at every level of a recursion, down and up
 *	deep          the same as plain, and in a signal's handler, and beside a child that is spawned
 *	slope N [sleep|told]   a recursion whose levels call malloc N times and nothing else, or sleep for
 *	              0.1 ms between these calls, or, at each 50th level, go on calling until there is a byte
 *	              on standard input: after them lines come "level: BYTES" for each level; the first call
 *	              is before, the last after
 *	alternate     as deep, in a handler with a stack of its own, which counts below its first call
 *	threads       four threads at different depths, one after the other; then they end
 *	leader        main ends, a thread continues
 *	fork, thread-fork   the child has the stack of the thread that forked, and no other
 *	hidden spin|sleep [thread]   says "at BYTES" and stays there until it may continue (below);
 *	              calls malloc only afterwards
 *	waiting       two threads and main wait at known depths, without a call of malloc
 *
 * With MASSIF in the environment it asks Massif, too, before each call: `snapshot stack.SIZE`.
 *
 * To continue: when there is a file "go" (hidden sleep: a byte on standard input).
 */
#include "truth.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unwind.h>

#define FRAME 1000
#define THREADS 4
#define MAIN THREADS /* index of main's stack */
#define MAX_CALLS 900
#define FIRST_SIZE 20000u

struct use {
	uint64_t start;      /* first stack pointer; 0 = not there */
	uint64_t own, other; /* bytes of its own stack, and of a handler's */
	uint64_t handler;    /* the first call in the handler; 0 = not in it */
};

static struct use use[THREADS + 1];
static struct { uint64_t size, bytes; } call[MAX_CALLS];
static unsigned calls;
static char handler_stack[65536];
static volatile unsigned turn;
static int in_attach, asks_massif;

#define STACK_POINTER() ({ uint64_t sp_; __asm__ volatile("mov %%rsp, %0" : "=r"(sp_)); sp_; })

/* A system call made here, at this stack pointer. */
INLINE long raw_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static uint64_t all_stacks(void)
{
	uint64_t bytes = 0;

	for (int i = 0; i <= THREADS; i++)
		bytes += use[i].start ? use[i].own + use[i].other : 0;
	return bytes;
}

/* Thread @who is about to call malloc with stack pointer @sp: the size to ask for. */
static size_t next_call(int who, uint64_t sp)
{
	struct use *u = &use[who];

	if (u->handler) {
		u->handler = u->handler == 1 ? sp : u->handler;
		u->other = u->handler - sp;
	} else {
		u->own = u->start - sp;
		u->other = 0;
	}
	CHECK(calls < MAX_CALLS);
	call[calls].size = FIRST_SIZE + 8 * calls;
	call[calls].bytes = all_stacks();
	return call[calls++].size;
}

/* Valgrind's request for a monitor command (doc/massif.md 3); nothing at all without Valgrind. */
#define ASK_MASSIF(size) do { \
		char command_[32]; \
		snprintf(command_, sizeof(command_), "snapshot stack.%zu", (size_t)(size)); \
		const uint64_t request_[6] = {0x1202, (uint64_t)command_}; \
		uint64_t answer_; \
		__asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx" \
				 : "=d"(answer_) : "a"(request_), "0"(0ull) : "cc", "memory"); \
	} while (0)

/* The stack pointer at the call is that of the function around it: nothing is pushed. */
#define CALL(who) do { \
		size_t size_ = next_call(who, STACK_POINTER()); \
		if (asks_massif) \
			ASK_MASSIF(size_); \
		void *p_ = malloc(size_); \
		__asm__ volatile("" : "+r"(p_)); \
	} while (0)

/* The calls from number @first on, after "pid PID". */
static void write_truth(unsigned first)
{
	char line[64];
	int fd = open(getenv("TRUTH") ? getenv("TRUTH") : "/dev/stdout", O_WRONLY | O_APPEND | O_CREAT, 0666);

	int n = snprintf(line, sizeof(line), "pid %d\n", (int)getpid());

	CHECK(write(fd, line, (size_t)n) == n);
	for (unsigned i = first; i < calls; i++) {
		n = snprintf(line, sizeof(line), "stack: %lu %lu\n", (unsigned long)call[i].size,
				 (unsigned long)call[i].bytes);
		CHECK(write(fd, line, (size_t)n) == n);
	}
	close(fd);
}

/* -- recursion -- */

NOINLINE static void descend(int who, int levels)
{
	volatile char room[FRAME];

	room[0] = room[FRAME - 1] = 1;
	CALL(who);
	if (levels > 0)
		descend(who, levels - 1);
	CALL(who);
	room[0] = 2;
}

#define LEVELS 1000

static uint64_t level[LEVELS];
static char told;
static int must_sleep, must_be_told;

NOINLINE static void slope(unsigned n, unsigned times)
{
	volatile char room[FRAME];

	room[0] = room[FRAME - 1] = 1;
	level[n] = use[MAIN].start - STACK_POINTER();
	for (unsigned i = 0; i < times || (must_be_told && n % 50 == 49 && read(0, &told, 1) != 1); i++) {
		void *p = malloc(64);
		__asm__ volatile("" : "+r"(p) : : "memory");
		if (must_sleep)
			usleep(100);
		for (volatile int k = 0; k < 500; k++)
			;
	}
	if (n + 1 < LEVELS)
		slope(n + 1, times);
	room[0] = 2;
}

NOINLINE static void run_slope(unsigned times)
{
	CALL(MAIN);
	slope(0, times);
	CALL(MAIN);
}

static void write_levels(void)
{
	char line[64];
	int fd = open(getenv("TRUTH"), O_WRONLY | O_APPEND);

	for (unsigned i = 0; i < LEVELS && level[0]; i++) {
		int n = snprintf(line, sizeof(line), "level: %lu\n", (unsigned long)level[i]);
		CHECK(write(fd, line, (size_t)n) == n);
	}
	close(fd);
}

static void on_signal(int sig)
{
	(void)sig;
	if (use[MAIN].handler == 0 && (char *)&sig >= handler_stack && (char *)&sig < handler_stack + sizeof(handler_stack))
		use[MAIN].handler = 1;
	descend(MAIN, 5);
	use[MAIN].handler = 0;
}

NOINLINE static void recurse(int has_handler_stack)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = has_handler_stack ? SA_ONSTACK : 0};
	stack_t stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};

	CHECK(!sigaltstack(&stack, NULL));
	CHECK(!sigaction(SIGUSR1, &sa, NULL));
	CALL(MAIN);
	CHECK(system("exit 3") == 3 << 8); /* a child with its own stack in this memory */
	CALL(MAIN);
	descend(MAIN, 20);
	raise(SIGUSR1);
	CALL(MAIN);
	raise(SIGUSR1);
	descend(MAIN, 3);
}

/* -- threads -- */

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *last)
{
	if (_Unwind_GetIP(context)) /* else it is past the outermost frame */
		*(uint64_t *)last = _Unwind_GetCFA(context);
	return _URC_NO_REASON;
}

static uint64_t thread_start(void)
{
	uint64_t last = 0;

	_Unwind_Backtrace(note_frame, &last);
	CHECK(last > STACK_POINTER());
	return last;
}

/* Here, until it is turn @at or later; no function is called. */
#define WAIT_TURN(at) do { \
		while (turn < (at)) \
			raw_call(SYS_sched_yield, 0, 0, 0); \
	} while (0)

NOINLINE static void wait_inside(int who, int levels, unsigned at)
{
	volatile char room[FRAME];

	room[0] = room[FRAME - 1] = 1;
	if (levels > 0) {
		wait_inside(who, levels - 1, at);
	} else {
		if (in_attach)
			use[who].own = use[who].start - STACK_POINTER();
		__atomic_add_fetch(&turn, in_attach, __ATOMIC_SEQ_CST);
		WAIT_TURN(at);
		CALL(who);
		turn++;
	}
	room[0] = 2;
}

static void *work(void *arg)
{
	unsigned who = (unsigned)(uintptr_t)arg;

	use[who].start = thread_start();
	turn++;
	wait_inside((int)who, (int)who * 3 + 1, 100 + who);
	WAIT_TURN(200 + who);
	CALL((int)who);
	turn++;
	WAIT_TURN(300 + 2 * who);
	return NULL;
}

NOINLINE static void run_threads(void)
{
	pthread_t thread[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i));
		WAIT_TURN(i + 1);
	}
	CALL(MAIN);
	turn = 100;
	WAIT_TURN(100 + THREADS);
	CALL(MAIN);
	turn = 200;
	WAIT_TURN(200 + THREADS);
	for (unsigned i = 0; i < THREADS; i++) {
		CALL(MAIN);
		turn = 300 + 2 * i;
		CHECK(!pthread_join(thread[i], NULL));
		use[i].start = 0;
		CALL(MAIN);
	}
}

/* -- main ends first -- */

static char state_of(pid_t tid)
{
	char path[64], text[256];
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	char *p = strrchr(text, ')');
	return p ? p[2] : '?';
}

static void *survive(void *arg)
{
	use[0].start = thread_start();
	WAIT_TURN(1);
	CALL(0);
	turn = 2;
	while (state_of(getpid()) != 'Z')
		usleep(1000);
	use[MAIN].start = 0;
	CALL(0);
	write_truth(0);
	_exit(7);
	return arg;
}

NOINLINE static void leave_first(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, survive, NULL));
	CALL(MAIN);
	turn = 1;
	WAIT_TURN(2);
	CALL(MAIN);
	pthread_exit(NULL);
}

/* -- forks -- */

NOINLINE static void do_fork(int who)
{
	CALL(who);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i <= THREADS; i++)
			use[i].start = i == who ? use[i].start : 0;
		unsigned first = calls;
		descend(who, 4);
		write_truth(first);
		_exit(0);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CALL(who);
}

static void *fork_in_thread(void *arg)
{
	use[0].start = thread_start();
	WAIT_TURN(1);
	CALL(0);
	turn = 2;
	WAIT_TURN(3);
	if (arg)
		do_fork(0);
	turn = 4;
	WAIT_TURN(5);
	return NULL;
}

NOINLINE static void run_fork(int by_thread)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, fork_in_thread, by_thread ? use : NULL));
	CALL(MAIN);
	turn = 1;
	WAIT_TURN(2);
	if (!by_thread)
		do_fork(MAIN);
	turn = 3;
	WAIT_TURN(4);
	CALL(MAIN);
	turn = 5;
	pthread_join(thread, NULL);
}

/* -- stacks without calls -- */

static uint64_t hidden;

/* The first time only determines the depth: nothing is called down there. */
NOINLINE static void hide(int who, int levels, int is_first)
{
	volatile char room[FRAME * 8];
	char go[] = "go", byte;

	room[0] = room[sizeof(room) - 1] = 1;
	if (levels > 0)
		hide(who, levels - 1, is_first);
	else if (is_first)
		hidden = use[who].start - STACK_POINTER();
	else
		while (must_sleep ? raw_call(SYS_read, 0, (long)&byte, 1) == 0 :
				    raw_call(SYS_access, (long)go, F_OK, 0) != 0)
			for (volatile int i = 0; i < 100000; i++)
				;
	room[0] = 2;
}

NOINLINE static void say_and_hide(int who)
{
	char line[64];

	hide(who, 100, 1);
	int n = snprintf(line, sizeof(line), "at %lu\n", (unsigned long)hidden);
	CHECK(write(1, line, (size_t)n) == n);
	hide(who, 100, 0);
}

static void *hide_in_thread(void *arg)
{
	use[0].start = thread_start();
	say_and_hide(0);
	return arg;
}

NOINLINE static void run_hidden(int in_thread)
{
	pthread_t thread;

	if (in_thread) {
		CHECK(!pthread_create(&thread, NULL, hide_in_thread, NULL));
		CHECK(!pthread_join(thread, NULL));
	} else {
		say_and_hide(MAIN);
	}
	use[0].start = 0;
	CALL(MAIN);
}

/* -- for attaching -- */

NOINLINE static void run_waiting(void)
{
	pthread_t thread[2];
	char line[64], go[] = "go";

	in_attach = 1;
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)i));
		WAIT_TURN(2 * (i + 1));
	}
	use[MAIN].own = use[MAIN].start - STACK_POINTER();
	int n = snprintf(line, sizeof(line), "at %lu\n", (unsigned long)all_stacks());
	CHECK(write(1, line, (size_t)n) == n);
	while (raw_call(SYS_access, (long)go, F_OK, 0) != 0)
		raw_call(SYS_sched_yield, 0, 0, 0);
	turn = 100;
	WAIT_TURN(102);
	CALL(MAIN);
	turn = 200;
	WAIT_TURN(202);
	turn = 1000;
	for (unsigned i = 0; i < 2; i++) {
		CHECK(!pthread_join(thread[i], NULL));
		use[i].start = 0;
	}
	CALL(MAIN);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "deep";

	use[MAIN].start = (uint64_t)argv - sizeof(uint64_t);
	CHECK(*(int *)use[MAIN].start == argc);
	asks_massif = getenv("MASSIF") != NULL;
	if (!strcmp(mode, "plain"))
		descend(MAIN, 20);
	else if (!strcmp(mode, "slope")) {
		must_sleep = argc > 3 && !strcmp(argv[3], "sleep");
		must_be_told = argc > 3 && !must_sleep;
		CHECK(!must_be_told || !fcntl(0, F_SETFL, O_NONBLOCK));
		run_slope((unsigned)argument(argc, argv, 2, 100));
	}
	else if (!strcmp(mode, "deep"))
		recurse(0);
	else if (!strcmp(mode, "alternate"))
		recurse(1);
	else if (!strcmp(mode, "threads"))
		run_threads();
	else if (!strcmp(mode, "leader"))
		leave_first();
	else if (!strcmp(mode, "fork") || !strcmp(mode, "thread-fork"))
		run_fork(mode[0] == 't');
	else if (!strcmp(mode, "hidden")) {
		must_sleep = argc > 2 && !strcmp(argv[2], "sleep");
		run_hidden(argc > 3);
	} else if (!strcmp(mode, "waiting"))
		run_waiting();
	else
		return 2;
	write_truth(0);
	write_levels();
	return 0;
}
