/*
 * Attributes that release local objects at the end of their scope. To return such a pointer use
 * return_ptr(p), which sets it to NULL.
 */
#ifndef PTMEM_BASE_CLEANUP_H
#define PTMEM_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define _cleanup_free_ __attribute__((cleanup(cleanup_free)))
#define _cleanup_close_ __attribute__((cleanup(cleanup_close)))
#define _cleanup_fclose_ __attribute__((cleanup(cleanup_fclose)))

#define return_ptr(p)                     \
	do {                              \
		__auto_type ret_ = (p);   \
		(p) = NULL;               \
		return ret_;              \
	} while (0)

#endif
