/*
 * An ELF object that a process had mapped, by its headers in the core file: both the kernel and
 * gcore put the first page of each object there, unless they are told not to.
 */
#ifndef PTMEM_INSPECT_CORE_OBJECT_H
#define PTMEM_INSPECT_CORE_OBJECT_H

#include "inspect/core_file.h"

#define CORE_BUILD_ID_MAX 64u

struct core_object {
	taddr_t bias;           /* address in the process - address in the ELF file */
	struct {
		taddr_t start, end;
	} segment[32];          /* PT_LOAD */
	size_t segments;
	uint8_t build_id[CORE_BUILD_ID_MAX];
	size_t build_id_size;   /* 0 = unknown */
};

/* The object whose first page is at @start. False: none is, or it is not in the core. */
bool core_object_read(const struct core_file *c, taddr_t start, struct core_object *out);

#endif
