/* See jemalloc_class.h. */
#include "inspect/jemalloc_class.h"

uint64_t jemalloc_class_size(uint32_t i)
{
	if (i <= 4)
		return i ? i * UINT64_C(16) : 8;
	uint32_t doubling = (i - 5) / 4, step = (i - 5) % 4 + 1;

	return (UINT64_C(64) << doubling) + (UINT64_C(16) << doubling) * step;
}
