/* The functions that allocate and map, as recorded in events. */
#ifndef PTMEM_BASE_HEAP_FUNCTION_H
#define PTMEM_BASE_HEAP_FUNCTION_H

/* Which function was called, as memusage's rows and reports distinguish them. */
enum heap_function {
	FUNCTION_NONE,
	FUNCTION_MALLOC,
	FUNCTION_CALLOC,
	FUNCTION_REALLOC,   /* realloc, reallocarray */
	FUNCTION_MEMALIGN,  /* memalign, posix_memalign, aligned_alloc, valloc, pvalloc */
	FUNCTION_NEW,
	FUNCTION_FREE,      /* free, cfree, free_sized, free_aligned_sized */
	FUNCTION_DELETE,
	FUNCTION_MMAP,
	FUNCTION_MUNMAP,
	FUNCTION_MREMAP,
	FUNCTION_BRK,
	FUNCTION_MINOR_FAULT,
	FUNCTION_MAJOR_FAULT,
	FUNCTION_REQUEST,   /* no function: the program announced an allocation or free */
};

#define HEAP_FUNCTION_COUNT (FUNCTION_REQUEST + 1)

#endif
