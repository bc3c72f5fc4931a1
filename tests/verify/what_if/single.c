/*
 * Programs of one thread for scripts/what_if_table. "frag" frees 15 of 16 blocks of growing sizes,
 * three times; "large" has 40 blocks of 20 KB to 2 MB; "grow" has 200 arrays that double by realloc.
 */
#include <stdlib.h>
#include <string.h>

static unsigned state = 1;

static unsigned next_random(void)
{
	state = state * 1664525u + 1013904223u;
	return state;
}

static void frag(void)
{
	enum { BLOCKS = 300000 };
	char **block = malloc(BLOCKS * sizeof(*block));

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < BLOCKS; i++) {
			size_t size = 16 + (next_random() >> 8) % (100u << round);

			block[i] = memset(malloc(size), 1, size);
		}
		for (int i = 0; i < BLOCKS; i++)
			if ((next_random() >> 8) % 16)
				free(block[i]);
	}
	free(block);
}

static void large(void)
{
	enum { BLOCKS = 40 };
	static char *block[BLOCKS];

	for (int round = 0; round < 3000; round++) {
		unsigned random = next_random();
		int i = (int)((random >> 8) % BLOCKS), next = (i + 1) % BLOCKS;
		size_t size = 20000 + (random >> 10) % 2000000;

		free(block[i]);
		block[i] = memset(malloc(size), 1, size);
		if (round % 7 == 0) {
			free(block[next]);
			block[next] = NULL;
		}
	}
	for (int i = 0; i < BLOCKS; i++)
		if (i % 5)
			free(block[i]);
}

static void grow(void)
{
	enum { ARRAYS = 200, MOST = 600000 };
	static char *array[ARRAYS];
	static size_t used[ARRAYS], room[ARRAYS];

	for (int round = 0; round < 400000; round++) {
		unsigned random = next_random();
		int i = (int)((random >> 8) % ARRAYS);
		size_t more = 100 + (random >> 20) % 400;

		if (used[i] + more > room[i]) {
			room[i] = room[i] ? room[i] * 2 : 256;
			if (room[i] < used[i] + more)
				room[i] = used[i] + more;
			array[i] = realloc(array[i], room[i]);
		}
		memset(array[i] + used[i], 1, more);
		used[i] += more;
		if (used[i] > MOST) {
			free(array[i]);
			array[i] = NULL;
			used[i] = room[i] = 0;
		}
	}
	for (int i = 0; i < ARRAYS; i++) {
		if (i % 3)
			free(array[i]);
		else if (array[i])
			array[i] = realloc(array[i], used[i]);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "frag") == 0)
		frag();
	else if (argc == 2 && strcmp(argv[1], "large") == 0)
		large();
	else if (argc == 2 && strcmp(argv[1], "grow") == 0)
		grow();
	else
		return 1;
	return 0;
}
