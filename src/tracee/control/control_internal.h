/* State of this directory's files, kept for each target. */
#ifndef PTMEM_TRACEE_CONTROL_CONTROL_INTERNAL_H
#define PTMEM_TRACEE_CONTROL_CONTROL_INTERNAL_H

#include "tracee/control/left_children.h"
#include <sys/types.h>

#include "base/vec.h"
#include "tracee/os/instructions.h"

struct control {
	struct own_settings *own_settings;    /* own_settings.c */
	struct job *job;                      /* job.c */
	struct standby *standby;              /* standby.c; NULL = there is no watcher */
	struct timers *timers;                /* timers.c */
	struct instruction_counters counters; /* --time-unit=i */
	struct faults *faults;                /* faults.c; NULL = page faults are not watched */
	int fault_error;                      /* -errno of the first event that failed; or 0 */
	VEC(ino_t) unreadable;                /* inodes of objects that were reported (install.c) */
	struct left_children left;
};

#endif
