/*
 * sparse: maps 32 TiB, of which a few pages contain the only pointers to blocks, and exits. A
 * function's name is the expected result of a leak check (leaks.c).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "noinline.h"

#define PAGE 4096ul
#define SIZE (32ul << 40)
#define CHECK(cond) ((cond) ? (void)0 : _exit(90))

/* Without leaving a copy in a register or on the stack. */
static NOINLINE void put(char *at, size_t size)
{
	void *p = malloc(size);
	memset(p, 0, size);
	memcpy(at, &p, sizeof(p));
	p = NULL;
	__asm__ volatile("" : "+r"(p) : : "memory");
}

static NOINLINE void reach_first(char *at) { put(at, 100); NO_TAIL_CALL(); }
static NOINLINE void reach_middle(char *at) { put(at, 200); NO_TAIL_CALL(); }
static NOINLINE void reach_last(char *at) { put(at, 300); NO_TAIL_CALL(); }
static NOINLINE void lost_plain(char *at) { put(at, 400); NO_TAIL_CALL(); }

int main(void)
{
	char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			 -1, 0);
	CHECK(map != MAP_FAILED && madvise(map, SIZE, MADV_NOHUGEPAGE) == 0);
	reach_first(map);
	for (unsigned long i = 0; i < 2000; i++) /* more than the kernel returns at once */
		reach_middle(map + SIZE / 2 + i * 3 * PAGE);
	lost_plain(map + SIZE / 3);
	CHECK(madvise(map + SIZE / 3 / PAGE * PAGE, PAGE, MADV_DONTNEED) == 0);
	reach_last(map + SIZE - sizeof(void *));
	_exit(0);
}
