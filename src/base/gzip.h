/* Compression in gzip's format. */
#ifndef PTMEM_BASE_GZIP_H
#define PTMEM_BASE_GZIP_H

#include <stddef.h>

/* Compresses @data. Returns the size; the caller frees *@out. */
size_t gzip_pack(const void *data, size_t size, char **out);

#endif
