/*
 * pointers SIZE: fills 1 GiB of heap with blocks of SIZE bytes, the allocator's share
 * of 16 among them, and every word of each with a pointer to another; then prints a line, and waits
 * until its input ends. For the leak check's row of make bench.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void ***block;

int main(int argc, char **argv)
{
	size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
	size_t count = ((size_t)1 << 30) / size, words = (size - 16) / sizeof(void *);
	uint64_t random = 1;
	block = malloc(count * sizeof(*block));
	if (!block || size < 32)
		return 2;
	for (size_t i = 0; i < count; i++)
		if (!(block[i] = malloc(size - 16)))
			return 2;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < words; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			block[i][k] = block[(random >> 33) % count];
		}
	}
	puts("filled");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
