/*
 * Whether a process can be attached to, and if not why, before it is touched.
 */
#ifndef PTMEM_TRACEE_CONTROL_ATTACH_CHECK_H
#define PTMEM_TRACEE_CONTROL_ATTACH_CHECK_H

#include "arch/arch.h"
#include "tracee/control/target.h"

/*
 * A thread of @pid through which its memory can be read: the first one, or another if that has
 * ended.
 */
pid_t attach_find_reader(pid_t pid);
/*
 * Returns 0, or -errno with *problem_out and *detail_out as target_attach. @reader: @pid; another
 * of its threads, if the first one is not needed.
 */
int attach_check(pid_t pid, pid_t reader, const struct arch *arch,
		 enum attach_problem *problem_out, long *detail_out);
/* The same for only the program of @pid: ATTACH_32BIT or ATTACH_PERMISSION. */
int attach_check_image(pid_t pid, const struct arch *arch, enum attach_problem *problem_out);

#endif
