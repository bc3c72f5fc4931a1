/*
 * Whether a process can be attached to, and if not why, before it is touched.
 */
#ifndef PTMEM_TRACEE_CONTROL_ATTACH_CHECK_H
#define PTMEM_TRACEE_CONTROL_ATTACH_CHECK_H

#include "arch/arch.h"
#include "tracee/control/target.h"

/*
 * Returns 0, or -errno with *problem_out and *detail_out as target_attach. @reader: a living thread
 * of @pid (proc_find_reader).
 */
int attach_check(pid_t pid, pid_t reader, const struct arch *arch,
		 enum attach_problem *problem_out, long *detail_out);
/* The same for only the program of @reader: ATTACH_32BIT or ATTACH_PERMISSION. */
int attach_check_image(pid_t reader, const struct arch *arch, enum attach_problem *problem_out);

#endif
