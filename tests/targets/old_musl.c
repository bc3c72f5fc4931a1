/*
 * Chunks as musl's malloc before 1.2.1 has them, laid out by this program: an area with a mapping of
 * its own, one in data, mapped blocks, one of them aligned. Answers each letter of standard input
 * with "BYTES BLOCKS" in use.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define HEADER 16u
#define IN_USE 1u
#define CHUNKS 400u
#define AREA (1u << 20)
#define MAPPED (80u * PAGE)

static struct {
	uint64_t used;
	struct list {
		uint32_t lock, waiters;
		char *first, *last;
	} list[64];
} bins;
static char data[PAGE] __attribute__((aligned(4096)));
static long bytes, blocks;

static uint64_t *word(char *at)
{
	return (uint64_t *)(void *)at;
}

static char *self(struct list *l)
{
	return (char *)&l->first - HEADER;
}

static void put_free(char *chunk, unsigned i)
{
	struct list *l = &bins.list[i];

	word(chunk)[2] = (uint64_t)(uintptr_t)self(l);
	word(chunk)[3] = (uint64_t)(uintptr_t)l->last;
	if (l->first == self(l))
		l->first = chunk;
	else
		word(l->last)[2] = (uint64_t)(uintptr_t)chunk;
	l->last = chunk;
	bins.used |= UINT64_C(1) << i;
}

/* @count chunks from @at on, every fifth of which is free. */
static void lay_out(char *at, unsigned count)
{
	uint64_t before = IN_USE;

	for (unsigned i = 0; i < count; i++) {
		uint64_t size = 32 + i * 7 % 60 * 32;

		word(at)[0] = before;
		before = word(at)[1] = size | (i % 5 ? IN_USE : 0);
		if (i % 5) {
			memset(at + HEADER, 'x', size - HEADER);
			bytes += (long)(size - HEADER);
			blocks++;
		} else {
			put_free(at, i % 3);
		}
		at += size;
	}
	word(at)[0] = before;
	word(at)[1] = IN_USE;
}

static char *map(size_t size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A mapped block. */
static void lay_out_mapped(size_t align)
{
	char *start = map(MAPPED);
	size_t offset = (size_t)(-(uintptr_t)(start + 2 * HEADER) & (align - 1)) + 2 * HEADER;
	char *at = start + offset - HEADER;

	word(start + HEADER)[0] = HEADER;
	word(start + HEADER)[1] = MAPPED - HEADER;
	word(at)[0] = (uint64_t)(at - start);
	word(at)[1] = (uint64_t)(start + MAPPED - at);
	memset(start + offset, 'y', 64);
	bytes += (long)(MAPPED - offset);
	blocks++;
}

static int answer(void)
{
	char text[64]; /* stdio would have a block of the real malloc's */
	int n = snprintf(text, sizeof(text), "%ld %ld\n", bytes, blocks);

	return write(STDOUT_FILENO, text, (size_t)n) == n;
}

int main(void)
{
	char letter;

	for (unsigned i = 0; i < 5; i++)
		bins.list[i].first = bins.list[i].last = self(&bins.list[i]);
	lay_out(map(AREA) + HEADER, CHUNKS);
	lay_out(data + 5 * 32 + HEADER, 3);
	lay_out_mapped(HEADER);
	lay_out_mapped(8 * PAGE);
	while (answer() && read(STDIN_FILENO, &letter, 1) == 1)
		continue;
	return 0;
}
