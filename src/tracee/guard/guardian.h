/*
 * Programs that ptmem attached to survive its death, also by SIGKILL.
 *
 *	handler       in the tracee: resumes threads that hit a breakpoint (trap_handler.h)
 *	journal       what was changed in each space, in memory that two processes share
 *	              (state/journal.h)
 *	guardian      a process that sleeps until ptmem is gone, then attaches to each space of the
 *	              journal, undoes the changes, and exits
 *	recovery      if the guardian was killed, too, the next ptmem that attaches does its work,
 *	              from the copy of the journal in the handler's page (recovery.h)
 *
 * Programs that ptmem started die with it (PTRACE_O_EXITKILL) and need none of this.
 */
#ifndef PTMEM_TRACEE_GUARD_GUARDIAN_H
#define PTMEM_TRACEE_GUARD_GUARDIAN_H

#include <stdbool.h>
#include <sys/types.h>

struct journal;
struct target;

/* Undoes all that @journals (JOURNALS of them) record; runs in a process of its own. */
typedef void guardian_clean_fn(struct journal *journals);

/*
 * Starts the guardian, before the first attach. Without one, which is logged, handlers alone keep
 * programs alive. -errno: there are not even journals.
 */
int guardian_start(struct target *t, guardian_clean_fn *clean);
/* Tells the guardian to exit, and waits until it has. */
void guardian_stop(struct target *t);

/*
 * In the guardian: @t undoes what @record, one of @journals, says. The caller keeps both. Before
 * @record changes.
 */
void guardian_take_over(struct target *t, struct journal *journals, const struct journal *record);

/* Whether @pid is a guardian. */
bool guardian_is(pid_t pid);

/*
 * Makes the calling process, a fork of ptmem, a guardian: guardian_is() is true of it, and what
 * ends or stops ptmem does not affect it. It keeps no file open but @fd, as its standard input.
 */
void guardian_become(int fd);

/*
 * Restores the signal masks that ptmem had changed when it died, all threads being stopped; nothing
 * where that has not happened.
 */
void guardian_restore_masks(struct target *t);

#endif
