/*
 * cold MODE: watched functions that have no room for a jump stay breakpoints beside others that are jumps.
 *	inner     malloc and free have two bytes each and are called by operator new and delete
 *	outer     delete[] has two bytes and jumps to delete; each block has the address of the one before
 *	again     one thread allocates blocks, another deletes them, at one address; no watched function is called inside
 *	segments  like outer, with functions in their own code segment
 */
#include <pthread.h>
#include <semaphore.h>

#include "truth.h"

extern "C" {
void *__libc_malloc(size_t size);
void __libc_free(void *p);
__attribute__((used)) void *real_malloc(size_t size) { return __libc_malloc(size); }
__attribute__((used)) void real_free(void *p) { __libc_free(p); }
}

__asm__(".text\n.balign 64\n"
	".globl malloc\n.type malloc,@function\nmalloc: jmp 1f\n.size malloc,.-malloc\n"
	".globl free\n.type free,@function\nfree: jmp 2f\n.size free,.-free\n"
	".globl _ZdaPv\n.type _ZdaPv,@function\n_ZdaPv: jmp 3f\n.size _ZdaPv,.-_ZdaPv\n"
	"1: jmp real_malloc\n2: jmp real_free\n3: jmp _ZdlPv\n"
	".section .far,\"ax\",@progbits\n.balign 64\n"
	".globl pvalloc\n.type pvalloc,@function\npvalloc: push %rbx\n mov %rdi,%rbx\n mov %rbx,%rdi\n call real_malloc\n pop %rbx\n ret\n"
	".size pvalloc,.-pvalloc\n.text\n");

#define ROOM __asm__ volatile("nop; nop; nop; nop; nop; nop") /* a jump fits here */

static bool is_fixed;       /* the address of all blocks */
static char fixed_block[64];

NOINLINE void *operator new(size_t size)
{
	ROOM;
	return is_fixed ? fixed_block : malloc(size);
}

NOINLINE void operator delete(void *p) noexcept
{
	ROOM;
	if (!is_fixed)
		free(p);
	__asm__ volatile(""); /* no tail call */
}

NOINLINE void operator delete(void *p, size_t) noexcept
{
	ROOM;
	if (!is_fixed)
		free(p);
	__asm__ volatile("");
}

void operator delete[](void *p) noexcept;

#define ROUNDS 3000

/* The compiler must not see whose block it is. */
INLINE void *hidden(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

static void inner(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		int *p = new int;
		truth_made(p, sizeof(*p));
		truth_gone(sizeof(*p));
		delete p;
	}
}

static void outer(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *p = ::operator new(40);
		truth_made(p, 40);
		truth_gone(40);
		::operator delete[](hidden(p));
	}
}

#define TURNS 1000 /* each takes two switches of threads, on a loaded machine milliseconds */

static sem_t is_made, is_deleted;

/*
 * Sleeps instead of calling sched_yield: with busy processes each turn would take their time
 * slices.
 */
static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		CHECK(errno == EINTR);
}

static void *delete_all(void *)
{
	for (int i = 0; i < TURNS; i++) {
		wait_for(&is_made);
		truth_gone(30);
		::operator delete(hidden(fixed_block));
		sem_post(&is_deleted);
	}
	return NULL;
}

static void again(void)
{
	pthread_t thread;

	truth.has_threads = 1;
	sem_init(&is_made, 0, 0);
	sem_init(&is_deleted, 0, 0);
	CHECK(!pthread_create(&thread, NULL, delete_all, NULL));
	is_fixed = true;
	for (int i = 0; i < TURNS; i++) {
		truth_made(::operator new(30), 30);
		sem_post(&is_made);
		wait_for(&is_deleted);
	}
	is_fixed = false;
	CHECK(!pthread_join(thread, NULL));
}

extern "C" void *pvalloc(size_t size) noexcept;

static void segments(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *p = pvalloc(50);
		truth_made(p, 50);
		t_free(p, 50);
	}
	outer();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "inner"))
		inner();
	else if (!strcmp(mode, "outer"))
		outer();
	else if (!strcmp(mode, "again"))
		again();
	else if (!strcmp(mode, "segments"))
		segments();
	else
		CHECK(!"mode");
	truth_report();
	return 0;
}
