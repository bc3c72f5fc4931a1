/*
 * timed MODE THREADS LOG [no-counter]: each thread allocates and releases blocks, and notes what the clock
 * (CLOCK_MONOTONIC) said before and after each call. LOG gets a struct entry for each call. Modes:
 *	dense    as fast as it goes
 *	steady   every 100 us, without sleeping
 *	bursts   150 pairs, then 1 ms of sleep
 *	short    a few pairs, then 30 us of sleep
 *	brief    as short, a quarter as many
 *	sleepy   one pair, then 1 ms of sleep
 *	slow     one pair, then 30 ms of sleep
 *	forked   as steady, in a child process, and fewer
 *	held     stops its tracer for 5 ms, then 50 pairs before that continues, and 50 after it
 * With `no-counter` there are fewer calls: it forbids itself to read the CPU's counter (PR_SET_TSC), and asks the kernel for
 * the time; status 6 if the counter can be read nevertheless. A block's size says which call of its thread allocated it (modulo SIZES).
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZES 4096
#define SMALLEST 24

struct entry {
	uint64_t before, after, addr;
	uint32_t thread, size; /* size 0: a release */
};

static struct mode {
	const char *name;
	long pairs;      /* of all threads together */
	int burst;       /* pairs between pauses */
	long sleep_ns, spin_ns;
} modes[] = {
	{"dense", 120000, 1, 0, 0},      {"steady", 4000, 1, 0, 100000},
	{"bursts", 30000, 150, 1000000, 0}, {"short", 20000, 3, 30000, 0},
	{"brief", 5000, 3, 30000, 0},    {"sleepy", 800, 1, 1000000, 0},
	{"slow", 40, 1, 30000000, 0},
	{"forked", 2000, 1, 0, 100000},
	{"held", 8000, 50, 0, 0},
};

static const struct mode *mode;
static long pairs;               /* of a thread */
static int tracer;               /* to be held; 0: none */
static struct entry *entries;

static int has_no_counter;

static uint64_t now(void)
{
	struct timespec ts;
	if (has_no_counter)
		syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &ts);
	else
		clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

__attribute__((noinline)) static void *allocate(struct entry *e, size_t size)
{
	e->size = (uint32_t)size;
	e->before = now();
	void *p = malloc(size);
	e->after = now();
	e->addr = (uintptr_t)p;
	return p;
}

__attribute__((noinline)) static void release(struct entry *e, void *p)
{
	e->addr = (uintptr_t)p;
	e->before = now();
	free(p);
	e->after = now();
}

#define HOLD_NS 5000000

static int find_tracer(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	int tracer = 0;

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "TracerPid: %d", &tracer);
	if (file)
		fclose(file);
	return tracer;
}

/* Stops the tracer, or lets it continue: in turns. */
static void hold(void)
{
	const struct timespec ts = {0, HOLD_NS};
	static int is_held;

	is_held = !is_held;
	kill(tracer, is_held ? SIGSTOP : SIGCONT);
	nanosleep(&ts, NULL);
}

static void pause_for(void)
{
	const struct timespec ts = {mode->sleep_ns / 1000000000, mode->sleep_ns % 1000000000};
	uint64_t end = now() + (uint64_t)mode->spin_ns;

	if (mode->sleep_ns)
		nanosleep(&ts, NULL);
	while (now() < end)
		;
}

static void *run(void *arg)
{
	struct entry *e = arg;
	uint32_t thread = (uint32_t)gettid();
	void *kept[8] = {0};

	for (long i = 0; i < pairs; i++) {
		void **slot = &kept[i % 8];
		e->thread = thread;
		release(e++, *slot);
		e->thread = thread;
		*slot = allocate(e++, SMALLEST + (size_t)(i % SIZES));
		if ((i + 1) % mode->burst == 0 && tracer)
			hold();
		else if ((i + 1) % mode->burst == 0)
			pause_for();
	}
	if (tracer)
		kill(tracer, SIGCONT);
	return NULL;
}

static sigjmp_buf back;

static void on_fault(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* Whether to read the counter is an error now. */
static int forbid_counter(void)
{
	volatile int is_forbidden = 1;

	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	signal(SIGSEGV, on_fault);
	if (!sigsetjmp(back, 1)) {
		__asm__ volatile("rdtsc" : : : "eax", "edx");
		is_forbidden = 0;
	}
	signal(SIGSEGV, SIG_DFL);
	return is_forbidden;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	pthread_t id[64];

	for (size_t i = 0; argc > 3 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(modes[i].name, argv[1]) == 0)
			mode = &modes[i];
	if (!mode || threads < 1 || threads > 64)
		return 2;
	has_no_counter = argc > 4;
	tracer = strcmp(mode->name, "held") == 0 ? find_tracer() : 0;
	if (has_no_counter && !forbid_counter())
		return 6;
	if (strcmp(mode->name, "forked") == 0) {
		int status = 7;
		pid_t child = fork();
		if (child != 0)
			return child > 0 && waitpid(child, &status, 0) == child ? status : 7;
	}
	pairs = mode->pairs / (mode->sleep_ns ? 1 : threads);
	if (threads > 1 && mode->sleep_ns)
		pairs = pairs / 4 + 1;
	if (has_no_counter)
		pairs = pairs / 8 + 1;
	size_t size = sizeof(*entries) * 2 * (size_t)pairs * (size_t)threads;
	entries = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (entries == MAP_FAILED)
		return 3;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&id[i], NULL, run, &entries[2 * pairs * i]) != 0)
			return 4;
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	int fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0666);
	return write(fd, entries, size) == (ssize_t)size ? 0 : 5;
}
