/* A library for dl.c, built three times: SALT differs, so that the code does; OWN brings a malloc. */
#include <stdint.h>
#include <stdlib.h>

#ifdef OWN
static char pool[1 << 16];
static size_t used;

__attribute__((visibility("default"))) void *malloc(size_t size)
{
	char *p = pool + used;

	used += (size + 15) & ~(size_t)15;
	return p;
}

__attribute__((visibility("default"))) void free(void *p)
{
	(void)p;
}
#endif

volatile int library_salt;

void *library_make(uint64_t size)
{
	void *p;

	for (int i = 0; i < SALT; i++)
		library_salt += i;
	p = malloc(size);
	library_salt = 0;
	return p;
}

void library_drop(void *p)
{
	library_salt = SALT;
	free(p);
	library_salt = 0;
}
