/* What the files of a process's program and libraries have at an address. */
#ifndef PTMEM_OBJECT_BYTES_H
#define PTMEM_OBJECT_BYTES_H

#include <sys/types.h>

#include "base/types.h"

/* A pointer_read_fn; @modules: a struct held_modules. */
ssize_t object_bytes_read(void *modules, taddr_t addr, void *buf, size_t size);

#endif
