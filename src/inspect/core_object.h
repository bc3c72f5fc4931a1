/*
 * An ELF object that the process had mapped, read from its headers in the core file. Both the
 * kernel and gcore dump the first page of each object unless configured otherwise.
 */
#ifndef PTMEM_INSPECT_CORE_OBJECT_H
#define PTMEM_INSPECT_CORE_OBJECT_H

#include "inspect/core_file.h"

#define CORE_BUILD_ID_MAX 64u

struct core_object {
	taddr_t bias;           /* address in the process - address in the ELF file */
	struct {
		taddr_t start, end;
		bool is_exec;
	} segment[32];          /* PT_LOAD */
	size_t segments;
	uint8_t build_id[CORE_BUILD_ID_MAX];
	size_t build_id_size;   /* 0 = unknown */
};

/* Reads the object whose first page is at @start. False if there is none, or the core lacks it. */
bool core_object_read(const struct core_file *c, taddr_t start, struct core_object *out);

#endif
