/*
 * Children that executed another program, or were forked by a program whose profile gave way to
 * that of its successor, and are not profiled: how many, and which of the former had the most
 * memory resident, so that a user sees where memory may be that is in no profile. ptmem is detached
 * from them, and never stops them for this: it reads /proc/PID/status now and then, after 10 ms and
 * then after twice the time. What is read is a lower bound. The kernel knows the most that any
 * child had for which its parent waited (getrusage(2), of ptmem's children, when the program that
 * it started has ended): if that is more than profiled processes and ptmem had, it is one of
 * theirs.
 */
#ifndef PTMEM_TRACEE_CONTROL_LEFT_CHILDREN_H
#define PTMEM_TRACEE_CONTROL_LEFT_CHILDREN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/proc.h"

struct target;

#define LEFT_CHILDREN_WAIT_NS 10000000u /* before the first look */

struct left_child {
	pid_t pid;
	uint64_t started;       /* proc_stat.started: whether it is still that process */
	uint64_t next_ns, wait_ns;
};

struct left_children {
	unsigned count;         /* all */
	VEC(struct left_child) list; /* those that are read */
	char largest[PROC_COMM_SIZE];
	uint64_t largest_bytes; /* the most that was read; 0 = nothing was */
	uint64_t waited_bytes;  /* the most of ptmem's children before the first one of these */
};

/* @pid has executed another program, and is not profiled. The caller wakes the timers. */
void left_children_add(struct target *t, pid_t pid);
/* A child that was forked by a superseded program has ended. */
void left_children_note_ended(struct target *t);
/* Reads those whose turn has come; returns when the next one's comes, or UINT64_MAX. */
uint64_t left_children_poll(struct target *t, uint64_t now_ns);
/*
 * Reads all for the last time, and says what was found; nothing if there was none. @profiled: the
 * most that a profiled process had resident; 0 = unknown.
 */
void left_children_report(struct target *t, uint64_t profiled);
void left_children_deinit(struct left_children *l);

#endif
