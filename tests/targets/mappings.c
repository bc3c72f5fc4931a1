/*
 * A program that reports its own mappings, by function:
 *
 *	mappings [-w] ACTION...        -w: waits for a line on standard input first
 *
 * Output, one line per function: "SOURCE FUNCTION BYTES" (mapped at the end; faults: touched).
 * "smaps BYTES" is the size of all its mappings. No stdio: that would map.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "noinline.h"

#define PAGE 4096ul
#define CHECK(cond) ((cond) ? (void)0 : _exit(90))

static void say(const char *source, const char *function, unsigned long bytes)
{
	char line[200], digits[24];
	int i = sizeof(digits) - 1;
	digits[i] = 0;
	do
		digits[--i] = (char)('0' + bytes % 10);
	while (bytes /= 10);
	strcpy(line, source);
	strcat(line, " ");
	strcat(line, function);
	strcat(line, *function ? " " : "");
	strcat(line, digits + i);
	strcat(line, "\n");
	CHECK(write(1, line, strlen(line)) == (ssize_t)strlen(line));
}

static char *anonymous(unsigned long size, int flags)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	CHECK(p != MAP_FAILED);
	return p;
}

/* -- brk -- */

static NOINLINE void grow_first(long n) { CHECK(sbrk(n) != (void *)-1); NO_TAIL_CALL(); }
static NOINLINE void grow_second(long n) { CHECK(sbrk(n) != (void *)-1); NO_TAIL_CALL(); }

static void do_brk(void)
{
	grow_first(100001);
	grow_second(33333);
	grow_first(7);
	grow_second(-33);          /* of grow_first: 7; of grow_second: 26 */
	grow_second(1000000);
	grow_first(-1000000);
	CHECK(brk((char *)sbrk(0) + (1ul << 46)) != 0 && errno == ENOMEM);
	say("brk", "grow_first", 100001);
	say("brk", "grow_second", 33333 - 26);
}

/* -- mmap -- */

static NOINLINE char *map_cut(void) { char *p = anonymous(100 * PAGE, 0); NO_TAIL_CALL(); return p; }
static NOINLINE char *map_moved(void) { char *p = anonymous(10 * PAGE, 0); NO_TAIL_CALL(); return p; }
static NOINLINE char *map_under(void) { char *p = anonymous(20 * PAGE, 0); NO_TAIL_CALL(); return p; }
static NOINLINE char *map_gone(void) { char *p = anonymous(50 * PAGE, 0); NO_TAIL_CALL(); return p; }

static NOINLINE void map_over(char *at)
{
	CHECK(mmap(at, 5 * PAGE - 100, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	NO_TAIL_CALL();
}

static NOINLINE char *remap(char *p, unsigned long from, unsigned long to)
{
	char *q = mremap(p, from, to, MREMAP_MAYMOVE);
	CHECK(q != MAP_FAILED);
	return q;
}

static NOINLINE void map_file(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	CHECK(mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED);
	close(fd);
}

static NOINLINE void map_stack(void)
{
	anonymous(16 * PAGE, MAP_STACK);
	NO_TAIL_CALL();
}

static NOINLINE void map_shared(void)
{
	int id = shmget(IPC_PRIVATE, 6 * PAGE, 0600);
	CHECK(id >= 0);
	void *kept = shmat(id, NULL, 0), *gone = shmat(id, NULL, 0);
	CHECK(kept != (void *)-1 && gone != (void *)-1);
	CHECK(shmdt(gone) == 0);
	shmctl(id, IPC_RMID, NULL);
}

static void do_mmap(void)
{
	char *cut = map_cut(), *under = map_under(), *moved = map_moved();
	CHECK(munmap(map_gone(), 50 * PAGE) == 0);
	CHECK(munmap(cut + 10 * PAGE, 30 * PAGE) == 0);
	CHECK(munmap(cut + 10 * PAGE, 30 * PAGE) == 0); /* nothing there: no error, nothing goes */
	CHECK(munmap(cut + 1, PAGE) != 0);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
	map_over(under + 3 * PAGE);
	moved = remap(moved, 10 * PAGE, 4 * PAGE);           /* 4 stay map_moved's */
	char *fixed = anonymous(PAGE, 0);                    /* so that it must move */
	CHECK(munmap(fixed, PAGE) == 0);
	moved = remap(moved, 4 * PAGE, 4000 * PAGE);
	moved = remap(moved, 4000 * PAGE, 30 * PAGE);
	map_file();
	map_stack();
	map_shared();
	say("mmap", "map_cut", 70 * PAGE);
	say("mmap", "map_under", 15 * PAGE);
	say("mmap", "map_over", 5 * PAGE);
	say("mmap", "map_gone", 0);
	say("mmap", "remap+map_moved", 30 * PAGE);
	say("mmap", "map_file", 3 * PAGE);
	say("mmap", "map_stack", 16 * PAGE);
	say("mmap", "map_shared", 6 * PAGE);
}

/* -- threads: ranges move from one to another all the time -- */

#define THREADS 8
#define ROUNDS 300

static NOINLINE char *map_briefly(unsigned long pages) { char *p = anonymous(pages * PAGE, 0); NO_TAIL_CALL(); return p; }
static NOINLINE char *map_kept(void) { char *p = anonymous(2 * PAGE, 0); NO_TAIL_CALL(); return p; }

static void *churn(void *arg)
{
	unsigned long seed = (unsigned long)arg;
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		unsigned long pages = 1 + (seed >> 60);
		char *p = map_briefly(pages);
		if (i % 3 == 0)
			p = mremap(p, pages * PAGE, (pages + 3) * PAGE, MREMAP_MAYMOVE);
		CHECK(p != MAP_FAILED);
		CHECK(munmap(p, (pages + (i % 3 == 0 ? 3 : 0)) * PAGE) == 0);
		if (i % 100 == 0)
			map_kept();
	}
	return NULL;
}

static void do_threads(void)
{
	pthread_t t[THREADS];
	for (unsigned long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, churn, (void *)(i + 1)) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	say("mmap", "map_briefly", 0);
	say("mmap", "map_kept", THREADS * (ROUNDS / 100) * 2 * PAGE);
}

/* -- fork -- */

static NOINLINE void map_child(void) { anonymous(7 * PAGE, 0); NO_TAIL_CALL(); }

static void do_fork(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		map_child();
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	say("mmap", "map_child", 0);
}

/* A child that executes a program runs under the filter, too: its calls must not fail. */
static void do_exec(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "x=$(seq 1000); exit 7", NULL);
		_exit(127);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* -- faults -- */

static NOINLINE void touch(char *p, unsigned long pages)
{
	for (unsigned long i = 0; i < pages; i++)
		((volatile char *)p)[i * PAGE] = 1;
}

static NOINLINE void touch_many(char *p) { touch(p, 3000); NO_TAIL_CALL(); }
static NOINLINE void touch_few(char *p) { touch(p, 11); NO_TAIL_CALL(); }
static NOINLINE void touch_in_thread(char *p) { touch(p, 123); NO_TAIL_CALL(); }

static char *fresh(unsigned long pages)
{
	char *p = anonymous(pages * PAGE, 0);
	madvise(p, pages * PAGE, MADV_NOHUGEPAGE);
	return p;
}

static void *thread_touches(void *arg)
{
	touch_in_thread(arg);
	return NULL;
}

static void do_faults(void)
{
	char *many = fresh(3000), *few = fresh(11), *mine = fresh(123);
	pthread_t t;
	touch_many(many);
	touch_many(many);          /* again: no fault */
	touch_few(few);
	CHECK(madvise(few, 5 * PAGE, MADV_DONTNEED) == 0);
	touch_few(few);            /* five of them once more */
	CHECK(pthread_create(&t, NULL, thread_touches, mine) == 0);
	pthread_join(t, NULL);
	say("faults", "touch_many", 3000 * PAGE);
	say("faults", "touch_few", 16 * PAGE);
	say("faults", "touch_in_thread", 123 * PAGE);
}

/* -- the kernel's view -- */

static NOINLINE void use_stack(int depth)
{
	volatile char frame[100000];
	frame[0] = frame[sizeof(frame) - 1] = 1;
	if (depth > 1)
		use_stack(depth - 1);
	frame[1] = 1;
}

static unsigned long hex(const char **s)
{
	unsigned long n = 0;
	for (;; (*s)++) {
		if (**s >= '0' && **s <= '9')
			n = n * 16 + (unsigned long)(**s - '0');
		else if (**s >= 'a' && **s <= 'f')
			n = n * 16 + (unsigned long)(**s - 'a') + 10;
		else
			return n;
	}
}

static void do_smaps(void)
{
	static char text[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY);
	size_t n = 0;
	for (ssize_t k; (k = read(fd, text + n, sizeof(text) - 1 - n)) > 0;)
		n += (size_t)k;
	close(fd);
	unsigned long sum = 0;
	for (const char *s = text; *s;) {
		unsigned long start = hex(&s);
		s++;
		unsigned long end = hex(&s);
		if (end < 1ul << 47)
			sum += end - start;
		s = strchr(s, '\n') + 1;
	}
	say("smaps", "", sum);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } actions[] = {
		{"brk", do_brk}, {"mmap", do_mmap}, {"threads", do_threads}, {"fork", do_fork},
		{"exec", do_exec}, {"faults", do_faults}, {"smaps", do_smaps},
	};
	char c;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-w") == 0)
			CHECK(write(1, "ready\n", 6) == 6 && read(0, &c, 1) == 1);
		if (strcmp(argv[i], "stack") == 0)
			use_stack(20);
		for (size_t k = 0; k < sizeof(actions) / sizeof(*actions); k++) {
			if (strcmp(argv[i], actions[k].name) == 0)
				actions[k].run();
		}
	}
	return 0;
}
