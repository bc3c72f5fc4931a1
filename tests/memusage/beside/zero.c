/* sizes of nothing, and calloc in all shapes */
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 100; i++) {
		void *volatile p = malloc(0), *volatile q = calloc(0, i), *volatile r = calloc(i, 16);
		free(p);
		free(q);
		if (i % 2)
			free(r);
	}
	return 0;
}
