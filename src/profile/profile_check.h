/* The invariants of a profile (profile.h). */
#ifndef PTMEM_PROFILE_PROFILE_CHECK_H
#define PTMEM_PROFILE_PROFILE_CHECK_H

#include "profile/profile.h"

/* CHECKs them all; slow. */
void profile_check(const struct profile *p);

#endif
