/*
 * requests CASE [ARGUMENT...]: announces blocks by valgrind.h's client requests, by ptmem.h and by
 * probes of systemtap's kind, and counts them as it counts malloc's (a resize is a free and an
 * allocation).
 *	blocks            few of each kind, including ones without effect
 *	hot N THREADS     N rounds in each thread, four markers a round
 *	registers N       markers in assembly: they must preserve all registers and flags
 *	handler N         a signal handler announces while the program allocates and announces
 *	library PATH...   loads, uses and unloads each library twice (libmarks.c)
 *	nested            an allocator that announces inside malloc: one event
 *	answers           what the requests answer
 *	pools             memory pools (--mempools=yes)
 *	fork              parent and child announce
 *	serve             rounds until the end of input; prints "ready" first
 */
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <valgrind/valgrind.h>
#include <valgrind/memcheck.h>

#include "ptmem.h"
#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
__extension__ unsigned short otel_memory_alloc_semaphore __attribute__((unused)) __attribute__((section(".probes")));
__extension__ unsigned short otel_memory_free_semaphore __attribute__((unused)) __attribute__((section(".probes")));
#define HAS_SDT 1
#else
#define STAP_PROBE2(provider, name, a, b) ((void)(a), (void)(b))
#define STAP_PROBE1(provider, name, a) ((void)(a))
static unsigned short otel_memory_alloc_semaphore, otel_memory_free_semaphore;
#define HAS_SDT 0
#endif

#define ARENA (1 << 22)
#define MAX_THREADS 16

static char arena[ARENA];

static void truth_announced(uint64_t size)
{
	TRUTH_ADD(allocations, 1);
	truth_live((int64_t)size, 1);
}

/* -- one of each -- */

NOINLINE static void announce(void *p, size_t size)
{
	truth_announced(size);
	VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, 0);
}

NOINLINE static void retire(void *p, size_t size)
{
	truth_gone(size);
	VALGRIND_FREELIKE_BLOCK(p, 0);
}

NOINLINE static void resize(void *p, size_t old, size_t size)
{
	truth_gone(old);
	truth_announced(size);
	VALGRIND_RESIZEINPLACE_BLOCK(p, old, size, 0);
}

NOINLINE static void own_announce(void *p, size_t size)
{
	truth_announced(size);
	PTMEM_ALLOC(p, size);
}

NOINLINE static void own_retire(void *p, size_t size)
{
	truth_gone(size);
	PTMEM_FREE(p);
}

NOINLINE static void own_resize(void *old, size_t old_size, void *p, size_t size)
{
	if (old && (p || !size))
		truth_gone(old_size);
	if (p)
		truth_announced(size);
	PTMEM_REALLOC(old, p, size);
}

NOINLINE static void stap_announce(void *p, uint32_t size)
{
	if (HAS_SDT)
		truth_announced(size);
	STAP_PROBE2(otel_memory, alloc, p, size);
}

NOINLINE static void stap_retire(void *p, size_t size)
{
	if (HAS_SDT)
		truth_gone(size);
	STAP_PROBE1(otel_memory, free, p);
}

static void blocks(void)
{
	announce(arena, 100);
	announce(arena + 1000, 0);
	own_announce(arena + 2000, 33);
	own_resize(arena + 2000, 33, arena + 3000, 66);
	own_resize(arena + 3000, 66, NULL, 99); /* failed */
	own_resize(NULL, 0, arena + 4000, 7);
	own_resize(arena + 4000, 7, NULL, 0);
	stap_announce(arena + 5000, 500);
	stap_announce(arena + 6000, 600);
	resize(arena, 100, 250);
	PTMEM_ALLOC(0, 100);
	PTMEM_FREE(0);
	VALGRIND_MALLOCLIKE_BLOCK(0, 100, 0, 0);
	VALGRIND_FREELIKE_BLOCK(arena + 77777, 0); /* unknown */
	VALGRIND_MAKE_MEM_DEFINED(arena, 10);
	VALGRIND_PRINTF("nobody reads this %d\n", 1);
	VALGRIND_DISCARD_TRANSLATIONS(arena, 1);
	VALGRIND_CREATE_MEMPOOL(arena, 0, 0); /* without --mempools=yes: nothing */
	VALGRIND_MEMPOOL_ALLOC(arena, arena + 50, 60);
	retire(arena + 1000, 0);
	own_retire(arena + 3000, 66);
	stap_retire(arena + 6000, 600);
	/* a block that begins where the malloc'ed one begins that it is in */
	char *p = t_malloc(5000);
	announce(p, 40);
	announce(p + 40, 60);
	announce(p, 41); /* once more, over the first */
	retire(p, 41);
	retire(p, 40);
	t_free(p, 5000);
	p = t_malloc(3000);
	truth_gone(3000);
	VALGRIND_FREELIKE_BLOCK(p, 0); /* of a real block */
}

/* -- many -- */

struct worker {
	pthread_t thread;
	uint64_t rounds, bytes, frees, sum;
	char *base;
};

NOINLINE static uint64_t deep(struct worker *w, uint64_t i, unsigned depth)
{
	if (depth > 0)
		return deep(w, i, depth - 1) + 1;
	char *p = w->base + (i & 255) * 64, *q = p + 20000;

	VALGRIND_MALLOCLIKE_BLOCK(p, i & 63, 0, 0);
	PTMEM_ALLOC(q, i & 31);
	VALGRIND_FREELIKE_BLOCK(p, 0);
	if (i + 1 < w->rounds)
		PTMEM_FREE(q);
	w->bytes += (i & 63) + (i & 31);
	return i;
}

static void run_rounds(struct worker *w)
{
	for (uint64_t i = 0; i < w->rounds; i++)
		w->sum += deep(w, i, i % 9);
}

static pthread_barrier_t all_exist; /* else the C library uses one's stack again for another */

static void *run_worker(void *arg)
{
	pthread_barrier_wait(&all_exist);
	run_rounds(arg);
	return NULL;
}

static void hot(uint64_t rounds, unsigned threads)
{
	static struct worker worker[MAX_THREADS];

	truth.has_threads = threads > 1;
	CHECK(pthread_barrier_init(&all_exist, NULL, threads) == 0);
	for (unsigned i = 0; i < threads; i++) {
		worker[i] = (struct worker){ .rounds = rounds, .base = arena + i * 65536 };
		if (i > 0)
			CHECK(pthread_create(&worker[i].thread, NULL, run_worker, &worker[i]) == 0);
	}
	run_worker(&worker[0]);
	for (unsigned i = 0; i < threads; i++) {
		if (i > 0)
			pthread_join(worker[i].thread, NULL);
		truth.allocations += 2 * rounds;
		truth.frees += 2 * rounds - 1;
		truth.bytes += worker[i].bytes;
		truth.live += (rounds - 1) & 31;
		truth.blocks++;
		truth.peak = 63 + 31;
	}
}

/* -- registers -- */

uint64_t registers_before[16], registers_after[16], zone_after[16], flags_before, flags_after;
unsigned char vectors_before[16][16], vectors_after[16][16];
uint64_t marker_registers(const uint64_t *request);

/*
 * Order of the sixteen: rax rbx rcx rdx rsi rdi rbp r8-r15, rsp. The stack below the request is the
 * red zone; the flags are those that rotations leave alone, and that of direction.
 */
__asm__(
	"	.text\n"
	"	.type marker_registers, @function\n"
	"marker_registers:\n"
	"	.cfi_startproc\n"
	"	push %rbx\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %rbx, -16\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %rbp, -24\n"
	"	push %r12\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %r12, -32\n"
	"	push %r13\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %r13, -40\n"
	"	push %r14\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %r14, -48\n"
	"	push %r15\n	.cfi_adjust_cfa_offset 8\n	.cfi_offset %r15, -56\n"
	"	sub $56, %rsp\n	.cfi_adjust_cfa_offset 56\n"
	"	.irp i, 0, 1, 2, 3, 4, 5\n	mov 8*\\i(%rdi), %rax\n	mov %rax, 8*\\i(%rsp)\n	.endr\n"
	"	.irp i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16\n"
	"	movq $0x5a5a00+\\i, -8*\\i(%rsp)\n	.endr\n"
	"	.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
	"	movdqu vectors_before+16*\\i(%rip), %xmm\\i\n	.endr\n"
	"	mov flags_before(%rip), %rax\n"
	"	lea -256(%rsp), %rsp\n	push %rax\n	popfq\n	lea 256(%rsp), %rsp\n"
	"	mov %rsp, %rax\n"
	"	mov $0x1111, %ebx\n	mov $0x2222, %ecx\n	mov $0x0, %edx\n	mov $0x4444, %esi\n"
	"	mov $0x5555, %edi\n	mov $0x6666, %ebp\n	mov $0x7777, %r8d\n	mov $0x8888, %r9d\n"
	"	mov $0x9999, %r10d\n	mov $0xaaaa, %r11d\n	mov $0xbbbb, %r12d\n	mov $0xcccc, %r13d\n"
	"	mov $0xdddd, %r14d\n	mov $0xeeee, %r15d\n"
	"	mov %rax, registers_before+0(%rip)\n	mov %rsp, registers_before+120(%rip)\n"
	"	.byte 0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d\n"
	"	.byte 0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33\n"
	"	.byte 0x48, 0x87, 0xdb\n"
	"	mov %rax, registers_after+0(%rip)\n	mov %rbx, registers_after+8(%rip)\n"
	"	mov %rcx, registers_after+16(%rip)\n	mov %rdx, registers_after+24(%rip)\n"
	"	mov %rsi, registers_after+32(%rip)\n	mov %rdi, registers_after+40(%rip)\n"
	"	mov %rbp, registers_after+48(%rip)\n	mov %r8, registers_after+56(%rip)\n"
	"	mov %r9, registers_after+64(%rip)\n	mov %r10, registers_after+72(%rip)\n"
	"	mov %r11, registers_after+80(%rip)\n	mov %r12, registers_after+88(%rip)\n"
	"	mov %r13, registers_after+96(%rip)\n	mov %r14, registers_after+104(%rip)\n"
	"	mov %r15, registers_after+112(%rip)\n	mov %rsp, registers_after+120(%rip)\n"
	"	.irp i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16\n"
	"	mov -8*\\i(%rsp), %rax\n	mov %rax, zone_after+8*\\i-8(%rip)\n	.endr\n"
	"	.irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n"
	"	movdqu %xmm\\i, vectors_after+16*\\i(%rip)\n	.endr\n"
	"	lea -256(%rsp), %rsp\n	pushfq\n	pop %rax\n	lea 256(%rsp), %rsp\n	cld\n"
	"	mov %rax, flags_after(%rip)\n"
	"	mov registers_after+24(%rip), %rax\n"
	"	add $56, %rsp\n	.cfi_adjust_cfa_offset -56\n"
	"	pop %r15\n	.cfi_adjust_cfa_offset -8\n	pop %r14\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %r13\n	.cfi_adjust_cfa_offset -8\n	pop %r12\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbp\n	.cfi_adjust_cfa_offset -8\n	pop %rbx\n	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	"	.size marker_registers, . - marker_registers\n");

#define KEPT_FLAGS 0x4d4u /* parity, adjust, zero, sign, direction */

static void check_marker(const uint64_t *request)
{
	static const uint64_t want[16] = { 0, 0x1111, 0x2222, 0, 0x4444, 0x5555, 0x6666, 0x7777, 0x8888, 0x9999,
					   0xaaaa, 0xbbbb, 0xcccc, 0xdddd, 0xeeee, 0 };

	CHECK(marker_registers(request) == 0);
	for (int i = 0; i < 16; i++) {
		CHECK(registers_after[i] == (i == 0 || i == 15 ? registers_before[i] : want[i]));
		CHECK(zone_after[i] == (uint64_t)(0x5a5a00 + i + 1));
	}
	CHECK(memcmp(vectors_before, vectors_after, sizeof(vectors_before)) == 0);
	CHECK(((flags_before ^ flags_after) & KEPT_FLAGS) == 0);
}

static void registers(uint64_t rounds)
{
	const uint64_t base = 0x202;
	static const uint64_t flags[] = { 0, 0x40, 0x80, 0x4, 0x10, 0x400, 0x4d4 };

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t size = i & 127;
		const uint64_t make[6] = { 0x1301, (uint64_t)arena, size, 0, 0, 0 };
		const uint64_t drop[6] = { 0x1302, (uint64_t)arena, 0, 0, 0, 0 };
		const uint64_t other[6] = { 0x4d430000, 1, 2, 3, 4, 5 };

		for (unsigned k = 0; k < sizeof(vectors_before); k++)
			((unsigned char *)vectors_before)[k] = (unsigned char)(i * 7 + k);
		flags_before = base | flags[i % 7];
		truth_announced(size);
		check_marker(make);
		check_marker(other);
		truth_gone(size);
		check_marker(drop);
	}
}

/* -- signals -- */

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	char *p = arena + 100000 + (handled & 63) * 64;

	(void)sig;
	TRUTH_ADD(allocations, 1);
	TRUTH_ADD(frees, 1);
	TRUTH_ADD(bytes, 48);
	VALGRIND_MALLOCLIKE_BLOCK(p, 48, 0, 0);
	VALGRIND_FREELIKE_BLOCK(p, 0);
	handled++;
}

static void handler(uint64_t rounds)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	const struct itimerval often = { { 0, 300 }, { 0, 300 } }, off = { { 0, 0 }, { 0, 0 } };
	uint64_t handled_before = 0;

	truth.has_threads = 1; /* the peak depends on when signals come */
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t i = 0; i < rounds || handled < 20; i++) {
		void *p = t_malloc(100 + i % 50);

		announce(arena + (i & 255) * 64, i & 63);
		retire(arena + (i & 255) * 64, i & 63);
		t_free(p, 100 + i % 50);
		if (i % 1000 == 999 && handled == (sig_atomic_t)handled_before)
			raise(SIGALRM);
		handled_before = (uint64_t)handled;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	CHECK(handled > 0);
}

/* -- libraries -- */

static void use_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	CHECK(library);
	void (*make)(void *, size_t) = (void (*)(void *, size_t))dlsym(library, "marks_make");
	void (*drop)(void *) = (void (*)(void *))dlsym(library, "marks_drop");

	CHECK(make && drop);
	for (int i = 0; i < 50; i++) {
		truth_announced(64);
		make(arena + 64 * i, 64);
		truth_gone(64);
		drop(arena + 64 * i);
	}
	truth_announced(1000);
	make(arena, 1000);
	truth_gone(1000);
	drop(arena);
	dlclose(library);
}

/* -- requests inside of malloc -- */

NOINLINE static void nested(void)
{
	/* libmarks.so, if it is preloaded, announces its own malloc's blocks as well */
	for (int i = 0; i < 100; i++) {
		void *p = t_malloc(32);

		t_free(p, 32);
	}
}

/* -- answers -- */

static void answers(void)
{
	struct text t = { { 0 }, 0 };

	text_number(&t, "running=", RUNNING_ON_VALGRIND);
	text_number(&t, " snapshot=", VALGRIND_MONITOR_COMMAND("snapshot one.out"));
	announce(arena, 1234);
	text_number(&t, " detailed=", VALGRIND_MONITOR_COMMAND("d two.out"));
	text_number(&t, " all=", VALGRIND_MONITOR_COMMAND("all_snapshots three.out"));
	text_number(&t, " xtree=", VALGRIND_MONITOR_COMMAND("xtmemory four.kcg"));
	text_number(&t, " help=", VALGRIND_MONITOR_COMMAND("help"));
	text_number(&t, " unknown=", VALGRIND_MONITOR_COMMAND("no_such"));
	text_number(&t, " detach=", VALGRIND_MONITOR_COMMAND("detach"));
	text_number(&t, " errors=", VALGRIND_COUNT_ERRORS);
	text_number(&t, " exists=", VALGRIND_MEMPOOL_EXISTS(arena));
	text_number(&t, " semaphores=", otel_memory_alloc_semaphore * 10u + otel_memory_free_semaphore);
	text_add(&t, "\n");
	CHECK(write(STDOUT_FILENO, t.s, t.n) == (ssize_t)t.n);
}

/* -- pools -- */

#define POOL(n) (arena + (n))

NOINLINE static void pool_announce(void *pool, void *p, size_t size)
{
	truth_announced(size);
	VALGRIND_MEMPOOL_ALLOC(pool, p, size);
}

NOINLINE static void pool_retire(void *pool, void *p, size_t size)
{
	truth_gone(size);
	VALGRIND_MEMPOOL_FREE(pool, p);
}

static void pools(void)
{
	VALGRIND_CREATE_MEMPOOL(POOL(1), 0, 0);
	CHECK(VALGRIND_MEMPOOL_EXISTS(POOL(1)) == 1 && VALGRIND_MEMPOOL_EXISTS(POOL(2)) == 0);
	for (int i = 0; i < 100; i++)
		pool_announce(POOL(1), arena + i * 100, (size_t)i);
	for (int i = 0; i < 50; i++)
		pool_retire(POOL(1), arena + i * 100, (size_t)i);
	VALGRIND_MEMPOOL_FREE(POOL(1), arena + 100000); /* unknown */
	/* 7000 to 8050: blocks 70 to 79 stay whole, the 80th keeps 50 bytes, all others go */
	for (int i = 50; i < 100; i++)
		if (i < 70 || i > 79)
			truth_gone((uint64_t)i);
	truth_announced(50);
	VALGRIND_MEMPOOL_TRIM(POOL(1), arena + 7000, 1050);
	truth_gone(70);
	truth_announced(77);
	VALGRIND_MEMPOOL_CHANGE(POOL(1), arena + 7000, arena + 500, 77);
	VALGRIND_MOVE_MEMPOOL(POOL(1), POOL(3));
	CHECK(VALGRIND_MEMPOOL_EXISTS(POOL(1)) == 0 && VALGRIND_MEMPOOL_EXISTS(POOL(3)) == 1);
	pool_announce(POOL(3), arena + 200000, 9);
	for (int i = 71; i < 80; i++)
		truth_gone((uint64_t)i);
	truth_gone(50);
	truth_gone(77);
	truth_gone(9);
	VALGRIND_DESTROY_MEMPOOL(POOL(3));
	CHECK(VALGRIND_MEMPOOL_EXISTS(POOL(3)) == 0);
	/* one that frees what was announced inside its blocks */
	VALGRIND_CREATE_MEMPOOL_EXT(POOL(4), 0, 0, VALGRIND_MEMPOOL_METAPOOL | VALGRIND_MEMPOOL_AUTO_FREE);
	for (int i = 0; i < 40; i++) {
		pool_announce(POOL(4), arena + 300000, 4096);
		announce(arena + 300000, 16);
		announce(arena + 300100, 17);
		announce(arena + 400000, 18);
		retire(arena + 300000, 16);
		truth_gone(17);
		pool_retire(POOL(4), arena + 300000, 4096);
		retire(arena + 400000, 18);
	}
	pool_announce(POOL(5), arena + 300000, 5); /* never created */
}

/* -- the rest -- */

static void forked(void)
{
	int status;

	announce(arena, 100);
	pid_t child = fork();
	if (child == 0) {
		for (int i = 0; i < 100; i++) {
			announce(arena + 1000, 10);
			retire(arena + 1000, 10);
			own_announce(arena + 2000, 20);
			own_retire(arena + 2000, 20);
		}
		retire(arena, 100);
		struct text t = { { 0 }, 0 };
		text_number(&t, "pid ", (uint64_t)getpid());
		truth_write(&t);
		truth_report();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	announce(arena + 3000, 5);
	struct text t = { { 0 }, 0 };
	text_number(&t, "pid ", (uint64_t)getpid());
	truth_write(&t);
}

static void serve(void)
{
	char c;
	struct worker w = { .rounds = 1000, .base = arena };

	CHECK(write(STDOUT_FILENO, "ready\n", 6) == 6);
	CHECK(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) == 0);
	while (read(STDIN_FILENO, &c, 1) != 0) {
		w.sum = 0;
		run_rounds(&w);
		registers(1);
		uint64_t want = 0;
		for (uint64_t i = 0; i < w.rounds; i++)
			want += i + i % 9;
		CHECK(w.sum == want);
		if (c == 's') {
			struct text t = { { 0 }, 0 };
			c = 0;
			text_number(&t, "semaphores=", otel_memory_alloc_semaphore * 10u + otel_memory_free_semaphore);
			text_add(&t, "\n");
			CHECK(write(STDOUT_FILENO, t.s, t.n) == (ssize_t)t.n);
		}
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "blocks";

	if (!strcmp(name, "blocks"))
		blocks();
	else if (!strcmp(name, "hot"))
		hot(argument(argc, argv, 2, 1000), (unsigned)argument(argc, argv, 3, 1));
	else if (!strcmp(name, "registers"))
		registers(argument(argc, argv, 2, 1000));
	else if (!strcmp(name, "handler"))
		handler(argument(argc, argv, 2, 20000));
	else if (!strcmp(name, "nested"))
		nested();
	else if (!strcmp(name, "answers"))
		answers();
	else if (!strcmp(name, "pools"))
		pools();
	else if (!strcmp(name, "fork"))
		forked();
	else if (!strcmp(name, "serve"))
		serve();
	else
		for (int i = 2; i < 2 * argc - 2; i++)
			use_library(argv[2 + (i - 2) % (argc - 2)]);
	truth_report();
	return 0;
}
