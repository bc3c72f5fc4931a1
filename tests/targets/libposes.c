/* A library that has jemalloc's name for what it exports, or another's (-Dmallctl=NAME), and glibc's malloc. */
#include <stddef.h>

void *__libc_malloc(size_t size);
void __libc_free(void *block);

int mallctl(const char *name, void *old, size_t *old_size, void *value, size_t size)
{
	(void)name, (void)old, (void)old_size, (void)value, (void)size;
	return 1;
}

void *malloc(size_t size)
{
	return __libc_malloc(size);
}

void free(void *block)
{
	__libc_free(block);
}
