/* The vdso of a process, an ELF file that the kernel maps. Internal to src/tracee. */
#ifndef PTMEM_TRACEE_STATE_VDSO_H
#define PTMEM_TRACEE_STATE_VDSO_H

#include <stdint.h>

struct address_space;
struct map;

/*
 * Copies the vdso of @s, mapped at @map, to @image, which has room for all of @map. Pages that the
 * process has not used yet do not become resident where that can be avoided. -errno if it cannot be
 * read.
 */
int vdso_read(const struct address_space *s, const struct map *map, uint8_t *image);

#endif
