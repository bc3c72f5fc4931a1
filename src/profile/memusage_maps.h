/* memusage's count of mappings. */
#ifndef PTMEM_PROFILE_MEMUSAGE_MAPS_H
#define PTMEM_PROFILE_MEMUSAGE_MAPS_H

#include "profile/memusage.h"

/* A call of mmap, mremap or munmap, failed ones included. */
void memusage_mapping_call(struct memusage *m, const struct event *ev);

#endif
