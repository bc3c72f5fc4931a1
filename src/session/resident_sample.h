/* The resident memory of a session's process, as an event of its profile. */
#ifndef PTMEM_RESIDENT_SAMPLE_H
#define PTMEM_RESIDENT_SAMPLE_H

#include "base/types.h"

struct session;

void resident_sample(struct session *s, uint64_t now_ns);

#endif
