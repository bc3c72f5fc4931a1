/* blocks that have mappings of their own, at every power of two */
#include <stdlib.h>
int main(void)
{
	void *volatile p[25];
	for (int i = 0; i < 25; i++)
		p[i] = malloc((size_t)1 << i);
	for (int i = 6; i < 25; i += 2) /* smaller ones may stay: memusage adds 16 bytes */
		p[i] = realloc(p[i], (size_t)3 << i);
	for (int i = 0; i < 25; i++)
		free(p[i]);
	return 0;
}
