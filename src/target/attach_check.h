/*
 * Whether a process can be attached to, and if not why, before it is touched.
 */
#ifndef PTMEM_TARGET_ATTACH_CHECK_H
#define PTMEM_TARGET_ATTACH_CHECK_H

#include "arch/arch.h"
#include "target/target.h"

/* 0, or -errno with *problem_out and *detail_out as target_attach has them. */
int attach_check(pid_t pid, const struct arch *arch, enum attach_problem *problem_out,
		 long *detail_out);

#endif
