/*
 * Detects when the dynamic linker of a space has changed the mapped objects. Internal to
 * src/tracee.
 */
#ifndef PTMEM_TRACEE_CONTROL_LOADER_H
#define PTMEM_TRACEE_CONTROL_LOADER_H

#include "tracee/state/space.h"

/*
 * At a stop of PROBE_LOADER, @trap: whether objects may have been added or removed since the
 * previous stop. Call once for each stop.
 */
bool loader_has_changed(struct address_space *s, const struct trap *trap);

/* Whether a change is in progress, which may load an allocator. */
bool loader_is_there(const struct address_space *s);

#endif
