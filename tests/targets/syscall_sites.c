/*
 * System calls from places other than libc's functions for them:
 *
 *	syscall_sites [-w] ACTION...      -w: waits for a byte on standard input before the actions
 *
 *	variants   through syscall(2), and by an instruction of its own with varying numbers
 *	signals    handlers that map while their thread waits in syscall(2), again and again
 *	generated  by code that the program generated, before the byte
 *	writable   by code that it writes into executable memory
 *	protected  by code that is made executable after it was written
 *	interrupted-calls  handlers that check where they interrupted a call in syscall(2); and a thread
 *	           that is cancelled while it reads
 *	library    from a library that it opens (the next argument)
 *
 * Prints "mmap FUNCTION BYTES" for what is mapped at the end, like mappings.c.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "noinline.h"

#define PAGE 4096l
#define CHECK(cond) ((cond) ? (void)0 : _exit(90))
#define PROT (PROT_READ | PROT_WRITE)
#define FLAGS (MAP_PRIVATE | MAP_ANONYMOUS)

static long by_instruction(long number, long a, long b, long c, long d)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = -1, r9 __asm__("r9") = 0;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static NOINLINE void map_through_libc(void)
{
	CHECK(syscall(SYS_mmap, 0, 3 * PAGE, PROT, FLAGS, -1, 0) > 0);
	NO_TAIL_CALL();
}

static NOINLINE void map_directly(void)
{
	CHECK(by_instruction(SYS_mmap, 0, 5 * PAGE, PROT, FLAGS) > 0);
	NO_TAIL_CALL();
}

/* One instruction for several calls: its number comes from memory, or from another branch. */
static NOINLINE long map_variably(const volatile long *number, long a, long b)
{
	long result = by_instruction(*number, a, b, PROT, FLAGS);
	NO_TAIL_CALL();
	return result;
}

static NOINLINE long map_either(int is_map, long a, long b)
{
	long result = by_instruction(is_map ? SYS_mmap : SYS_munmap, a, b, PROT, FLAGS);
	NO_TAIL_CALL();
	return result;
}

static void do_ways(void)
{
	const volatile long map = SYS_mmap, unmap = SYS_munmap, other = SYS_getpid;
	for (int i = 0; i < 50; i++) {
		map_through_libc();
		map_directly();
		long at = map_variably(&map, 0, 20 * PAGE);
		CHECK(at > 0 && map_variably(&unmap, at, 13 * PAGE) == 0);
		CHECK(map_variably(&other, 0, 0) == getpid());
		at = map_either(1, 0, 30 * PAGE);
		CHECK(at > 0 && map_either(0, at, 19 * PAGE) == 0);
		errno = 0;
		CHECK(syscall(SYS_munmap, at + 1, PAGE) == -1 && errno == EINVAL);
	}
	printf("mmap map_through_libc %ld\nmmap map_directly %ld\nmmap map_variably %ld\nmmap map_either %ld\n",
	       150 * PAGE, 250 * PAGE, 350 * PAGE, 550 * PAGE);
}

/* -- signals -- */

static int futex_word;
static volatile sig_atomic_t handled;

static NOINLINE void map_handler(void)
{
	CHECK(syscall(SYS_mmap, 0, PAGE, PROT, FLAGS, -1, 0) > 0);
	NO_TAIL_CALL();
}

static void on_signal(int sig)
{
	(void)sig;
	map_handler();
	handled++;
}

static void *wait_for_word(void *arg)
{
	(void)arg;
	while (__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST) == 0) {
		long rc = syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
		CHECK(rc == 0 || errno == EAGAIN || errno == EINTR);
	}
	return NULL;
}

static pthread_t waiter;

static void prepare_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	sigaction(SIGUSR1, &sa, NULL);
	CHECK(pthread_create(&waiter, NULL, wait_for_word, NULL) == 0);
	usleep(20000);
}

static void do_signals(void)
{
	for (int i = 0; i < 300; i++) {
		CHECK(pthread_kill(waiter, SIGUSR1) == 0);
		while (handled <= i)
			usleep(100);
	}
	printf("mmap map_handler %ld\n", 300 * PAGE);
}

static void end_signals(void)
{
	__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
	CHECK(pthread_join(waiter, NULL) == 0);
}

/* -- where a handler finds its thread -- */

static int way[2]; /* a pipe */
static volatile greg_t interrupted_at;

static void on_alarm(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info;
	interrupted_at = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	CHECK(write(way[1], "x", 1) == 1);
}

static void *read_for_ever(void *arg)
{
	int *pipe_of_nothing = arg;
	char c;
	return read(pipe_of_nothing[0], &c, 1) == 1 ? arg : NULL;
}

static void cancel_reader(void)
{
	int nothing[2];
	pthread_t reader;
	void *result = NULL;

	CHECK(pipe(nothing) == 0 && pthread_create(&reader, NULL, read_for_ever, nothing) == 0);
	usleep(50000);
	CHECK(pthread_cancel(reader) == 0);
	usleep(50000);
	CHECK(write(nothing[1], "x", 1) == 1); /* a thread that missed the cancellation does not hang */
	CHECK(pthread_join(reader, &result) == 0 && result == PTHREAD_CANCELED);
}

/* Calls that are interrupted and restarted. */
static void do_places(void)
{
	const struct itimerval soon = {.it_value.tv_usec = 30000};
	char c;

	CHECK(pipe(way) == 0);
	for (int i = 0; i < 10; i++) {
		struct sigaction sa = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | (i % 2 ? SA_RESTART : 0)};
		sigaction(SIGALRM, &sa, NULL);
		interrupted_at = 0;
		setitimer(ITIMER_REAL, &soon, NULL);
		long rc = syscall(SYS_read, way[0], &c, 1);
		CHECK(i % 2 ? rc == 1 : rc == -1 && errno == EINTR && read(way[0], &c, 1) == 1);
		CHECK((uintptr_t)interrupted_at - (uintptr_t)dlsym(RTLD_DEFAULT, "syscall") < 64);
	}
	cancel_reader();
	map_directly();
	printf("mmap map_directly %ld\n", 5 * PAGE);
}

/* -- generated code -- */

static long (*made)(long a, long b, long c, long d);

static void make_code(int prot_before, int prot_after)
{
	static const unsigned char code[] = {
		0x49, 0x89, 0xca,             /* mov %rcx, %r10 */
		0x49, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff, /* mov $-1, %r8 */
		0x4d, 0x31, 0xc9,             /* xor %r9, %r9 */
		0xb8, SYS_mmap, 0, 0, 0,      /* mov $SYS_mmap, %eax */
		0x0f, 0x05, 0xc3,             /* syscall; ret */
	};
	void *p = mmap(NULL, PAGE, prot_before, FLAGS, -1, 0);
	CHECK(p != MAP_FAILED);
	memcpy(p, code, sizeof(code));
	CHECK(prot_after == prot_before || mprotect(p, PAGE, prot_after) == 0);
	memcpy(&made, &p, sizeof(p));
}

static NOINLINE void map_made(void)
{
	CHECK(made(0, 9 * PAGE, PROT, FLAGS) > 0);
	NO_TAIL_CALL();
}

static void do_made(void)
{
	map_made();
	printf("mmap map_made %ld\n", 9 * PAGE);
}

static void do_new(int prot_before, int prot_after)
{
	make_code(prot_before, prot_after);
	printf("mmap make_code %ld\n", PAGE);
	do_made();
}

/* -- a library -- */

static void do_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	CHECK(library);
	long (*map)(long size) = NULL;
	*(void **)&map = dlsym(library, "hold_mapping");
	CHECK(map && map(17 * PAGE) > 0);
	printf("mmap hold_mapping %ld\n", 17 * PAGE);
}

static int has(int argc, char **argv, const char *action)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], action) == 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	char c;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (has(argc, argv, "signals"))
		prepare_signals();
	if (has(argc, argv, "generated"))
		make_code(PROT | PROT_EXEC, PROT | PROT_EXEC);
	if (has(argc, argv, "-w")) {
		CHECK(write(1, "ready\n", 6) == 6);
		CHECK(read(0, &c, 1) == 1);
	}
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "variants") == 0)
			do_ways();
		else if (strcmp(argv[i], "signals") == 0)
			do_signals();
		else if (strcmp(argv[i], "generated") == 0)
			do_made();
		else if (strcmp(argv[i], "writable") == 0)
			do_new(PROT | PROT_EXEC, PROT | PROT_EXEC);
		else if (strcmp(argv[i], "protected") == 0)
			do_new(PROT, PROT_READ | PROT_EXEC);
		else if (strcmp(argv[i], "interrupted-calls") == 0)
			do_places();
		else if (strcmp(argv[i], "library") == 0)
			do_library(argv[++i]);
	}
	if (has(argc, argv, "-w") && has(argc, argv, "signals")) {
		CHECK(write(1, "waits\n", 6) == 6);
		CHECK(read(0, &c, 1) == 1);
	}
	if (has(argc, argv, "signals"))
		end_signals();
	return 0;
}
