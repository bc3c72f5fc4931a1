/*
 * struct control, the state of this directory's files for each target, and functions that only
 * these files call: the end of processes, the table of stops, repairs, seizing and leaving.
 */
#ifndef PTMEM_TRACEE_CONTROL_CONTROL_H
#define PTMEM_TRACEE_CONTROL_CONTROL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "tracee/control/left_children.h"
#include "tracee/os/cpu_counters.h"
#include "tracee/state/event_sink.h"

struct control {
	struct own_settings *own_settings;    /* own_settings.c */
	struct job *job;                      /* job.c */
	struct standby *standby;              /* job.c; NULL = there is no watcher */
	struct timers *timers;                /* timers.c */
	struct instruction_counters counters; /* --time-unit=i */
	struct faults *faults;                /* faults.c; NULL = page faults are not watched */
	int fault_error;                      /* -errno of the first event that failed; or 0 */
	VEC(ino_t) unreadable;                /* inodes of objects that were reported (install.c) */
	struct left_children left;
};

/* The end of a process, and of its address space with everything that belongs to it. */

struct process;
struct target;

/* Removes @p from its space and from the table. */
void process_remove(struct target *t, struct process *p, enum space_end why);

/* The event loop's table: serves one stop. */

/* Handles a stop or the end of @tid. */
void loop_serve(struct target *t, pid_t tid, int status);

/* Memory of ptmem in the program that the program has unmapped. */

struct address_space;
struct thread;

/*
 * @th stopped for SIGSEGV. True if it could not access code of ptmem, or a pad its memory, since
 * the program had unmapped it: it is mapped again, and @th, which may be gone, continues.
 */
bool restore_serve_fault(struct target *t, struct thread *th);
/* Maps again what @s lacks; all threads are stopped. */
void restore_space(struct target *t, struct address_space *s);

/* Seizing all threads of a running process. */

/*
 * Seizes and stops all threads of process @pid. Returns 0 or -errno; -EAGAIN: no thread can work
 * for us now.
 */
int target_seize_all(struct target *t, pid_t pid);

/* Detaches from one program while others continue. */

/* An attach to @pid failed half-way: undoes it. Other processes continue. */
void target_undo_attach(struct target *t, pid_t pid);
/*
 * Detaches from a program that corrupted the memory it shares with us, if there is one. Not to be
 * called while a stop is handled.
 */
void target_leave_corrupt(struct target *t);

#endif
