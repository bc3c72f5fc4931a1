/*
 * The dynamic linker of a space: when it has changed what is mapped. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_CONTROL_LOADER_H
#define PTMEM_TRACEE_CONTROL_LOADER_H

#include "tracee/state/space.h"

/*
 * At a stop of PROBE_LOADER, @trap: whether objects may have come or gone since the one
 * before. Only to be asked once a stop.
 */
bool loader_has_changed(struct address_space *s, const struct trap *trap);

/* Whether one is running, which may load an allocator. */
bool loader_is_there(const struct address_space *s);

#endif
