/* Compression in gzip's format. */
#ifndef PTMEM_BASE_GZIP_H
#define PTMEM_BASE_GZIP_H

#include <stddef.h>

/* Compresses @data. Returns the size; the caller frees *@out. */
size_t gzip_pack(const void *data, size_t size, char **out);

/* Unpacks the beginning of @data: at most @room bytes. Returns their number; 0 if it is damaged. */
size_t gzip_peek(const void *data, size_t size, void *out, size_t room);

#endif
