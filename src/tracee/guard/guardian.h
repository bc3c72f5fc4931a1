/*
 * Keeps programs that ptmem attached to alive if ptmem dies, even by SIGKILL.
 *
 *	handler       in the tracee: resumes threads that hit a breakpoint (trap_handler.h)
 *	journal       all changes in each space, in memory shared with the guardian
 *	              (state/journal.h)
 *	guardian      a process that sleeps until ptmem is gone, then attaches to each space of the
 *	              journal, undoes the changes, and exits
 *	recovery      if the guardian was killed, too, the next ptmem that attaches does this,
 *	              from the copy of the journal in the handler's page
 *
 * Programs that ptmem started die with it (PTRACE_O_EXITKILL) and do not need this.
 */
#ifndef PTMEM_TRACEE_GUARD_GUARDIAN_H
#define PTMEM_TRACEE_GUARD_GUARDIAN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/types.h"

struct journal;
struct target;

/* Undoes all changes recorded in @journals (JOURNALS of them); runs in a separate process. */
typedef void guardian_clean_fn(struct journal *journals);

/*
 * Starts the guardian; call it before the first attach. A failure is logged; then only the trap
 * handlers keep programs alive. -errno: there are not even journals.
 */
int guardian_start(struct target *t, guardian_clean_fn *clean);
/* Makes the guardian exit, and waits until it has. */
void guardian_stop(struct target *t);

/*
 * In the guardian: prepares @t for undoing @record, one of @journals. The caller keeps both. Call
 * it before @record changes.
 */
void guardian_take_over(struct target *t, struct journal *journals, const struct journal *record);

/* Whether @pid is a guardian. */
bool guardian_is(pid_t pid);

/*
 * Turns the calling process, a fork of ptmem, into a guardian: guardian_is() is true for it, and
 * signals that end or stop ptmem do not affect it. Closes all files except @fd, which becomes its
 * standard input.
 */
void guardian_become(int fd);

/*
 * Restores the signal masks that ptmem had changed when it died; does nothing if there are none.
 * All threads must be stopped.
 */
void guardian_restore_masks(struct target *t);

/* Verifies a journal found in a program's memory, which is untrusted input. */

struct address_space;
struct arch;

/* The error in the numbers of @j, which was found in the page at @page; NULL = none. */
const char *journal_find_flaw(const struct journal *j, taddr_t page);
/*
 * Removes from @j, whose numbers are valid, everything that is not in @s any more: only what is
 * confirmed to be ptmem's may be written to. If something looks like ptmem's but is not confirmed,
 * the rest cannot be used either: returns the text for a message. NULL = @j can be used.
 */
const char *journal_verify(struct journal *j, const struct address_space *s,
			   const struct arch *arch);

/* Undoes what a ptmem that was killed together with its guardian left in a program. */

/* Waits, at most some seconds, until no guardian works on @pid. */
void recovery_await(pid_t pid);
/* Before an attach to @pid: does the work of a guardian that was killed, by @clean_fn. */
void recovery_run(pid_t pid, guardian_clean_fn *clean_fn);

#endif
