/*
 * Has a main arena in several parts, then waits until standard input ends. The first argument says
 * why:
 *
 *	sbrk     the program itself calls sbrk, between allocations
 *	mapped   another mapping is in the way of brk: malloc uses mmap instead
 *	back     likewise, and later the way is free again
 *	first    the way is not free when malloc is first used
 *
 * It prints a line for each of its blocks: "+ADDRESS SIZE" if in use, "-ADDRESS SIZE" if freed;
 * sizes are usable ones. The last line is "ready FOREIGN", the bytes that it took by sbrk itself.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCKS 6000

static struct block {
	uint64_t addr, size;
	int is_freed;
} block[BLOCKS];
static size_t count, foreign;
static char text[BLOCKS * 64];

/*
 * @n blocks; one in three is freed. Large ones come in between; the largest have mappings of their
 * own.
 */
static void allocate(size_t n)
{
	size_t first = count;

	for (size_t i = 0; i < n; i++) {
		size_t size = i % 500 == 250 ? 200000 + i * 10 :
			      i % 500 == 251 ? 5000000 : 1 + i * 53 % 2500;
		void *p = malloc(size);

		memset(p, (int)i, size);
		block[count++] = (struct block){(uint64_t)(uintptr_t)p, malloc_usable_size(p), 0};
	}
	for (size_t i = first; i < count; i++)
		if (i % 3 == 0) {
			free((void *)(uintptr_t)block[i].addr);
			block[i].is_freed = 1;
		}
}

/* Memory that looks like chunks, and is not malloc's. */
static void take(size_t size)
{
	uint64_t *p = sbrk((intptr_t)size);

	for (size_t i = 0; i + 1 < size / 8; i += 2)
		p[i + 1] = i % 64 ? 0 : 33;
	foreign += size;
}

static void *stand_in_the_way(void)
{
	uintptr_t end = ((uintptr_t)sbrk(0) + 4095) & ~(uintptr_t)4095;

	return mmap((void *)end, 4096, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

static void make_parts(const char *why)
{
	void *obstacle;

	if (strcmp(why, "sbrk") == 0) {
		for (size_t i = 0; i < 4; i++) {
			allocate(BLOCKS / 5);
			take(i == 1 ? 70000 : 8192 + i * 40);
		}
		allocate(BLOCKS / 5);
		return;
	}
	if (strcmp(why, "first") != 0)
		allocate(BLOCKS / 6);
	obstacle = stand_in_the_way();
	allocate(BLOCKS / 2);
	if (strcmp(why, "back") == 0) {
		munmap(obstacle, 4096);
		allocate(BLOCKS / 3);
	}
}

/* Whether the allocator has given the memory of a freed block to another one. */
static int is_used_again(const struct block *b)
{
	for (const struct block *e = block; e < block + count; e++)
		if (!e->is_freed && e->addr < b->addr + b->size && b->addr < e->addr + e->size)
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char letter;
	int n = 0;

	if (argc != 2)
		return 2;
	mallopt(M_MMAP_THRESHOLD, 4 << 20);
	make_parts(argv[1]);
	for (const struct block *b = block; b < block + count; b++)
		if (!b->is_freed || !is_used_again(b))
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%c%llx %llu\n",
				      b->is_freed ? '-' : '+', (unsigned long long)b->addr,
				      (unsigned long long)b->size);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "ready %zu\n", foreign);
	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		return 1;
	while (read(STDIN_FILENO, &letter, 1) == 1)
		;
	return 0;
}
