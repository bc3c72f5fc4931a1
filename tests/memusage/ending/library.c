/* A library that cleans up after its program. */
#include <stdlib.h>

static void *block[50];

void library_use(void)
{
	for (int i = 0; i < 50; i++)
		block[i] = malloc(50);
}

__attribute__((destructor)) static void destroy(void)
{
	for (int i = 0; i < 50; i++)
		free(block[i]);
	for (int i = 0; i < 35; i++)
		free(NULL);
	free(malloc(100000));
}
