/* Call sites in a recording (symbols/stack_site.h), as nodes: rows, -1 = no stack. */
#ifndef PTMEM_RECORDING_RECORDING_SITE_H
#define PTMEM_RECORDING_RECORDING_SITE_H

#include "recording/recording.h"

/* The call site of leaf @leaf (row). */
int64_t recording_site(const struct recording *r, size_t leaf);
/* The call site of the path that ends at node @node - 1; 0 = no stack. */
int64_t recording_site_of(const struct recording *r, uint64_t node);

#endif
