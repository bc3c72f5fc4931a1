/*
 * Stands in for a driver's library: its functions return an error code, and store the address of
 * the block. Memory comes from a mapping of its own.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define API __attribute__((visibility("default"), noinline))
#define ROOM ((size_t)1 << 36)

static char *memory;
static size_t used;

API int deviceMalloc(void **out, size_t size)
{
	if (!memory)
		memory = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			      -1, 0);
	if (size > ROOM - used)
		return 2;
	*out = memory + used;
	used += (size + 255) & ~(size_t)255;
	return 0;
}

API int deviceHostAlloc(void **out, size_t size, unsigned flags)
{
	return flags ? deviceMalloc(out, size) : 1;
}

API int deviceFree(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
	return 0;
}
