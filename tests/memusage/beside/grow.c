/* realloc: from nothing, larger, equal, smaller, to nothing; reallocarray */
#define _GNU_SOURCE
#include <stdlib.h>
int main(void)
{
	char *volatile p = NULL, *volatile pin;
	for (int i = 1; i <= 500; i++) {
		p = realloc(p, 24 * i);
		pin = malloc(24);
		p = realloc(p, 24 * i);
		free(pin);
	}
	for (int i = 500; i > 0; i--)
		p = realloc(p, 8 * i);
	p = realloc(p, 0);
	p = realloc(NULL, 0);
	p = realloc(p, 0);
	p = reallocarray(NULL, 30, 30);
	p = reallocarray(p, 60, 30);
	free(p);
	free(NULL);
	return 0;
}
