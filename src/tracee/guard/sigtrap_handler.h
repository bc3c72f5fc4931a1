/*
 * The handler of SIGTRAP in programs that ptmem attached to: if ptmem dies, a thread that hits a
 * leftover breakpoint receives SIGTRAP, and the handler resumes it as if the breakpoint were not
 * there (arch/trap_handler.h).
 */
#ifndef PTMEM_TRACEE_GUARD_SIGTRAP_HANDLER_H
#define PTMEM_TRACEE_GUARD_SIGTRAP_HANDLER_H

#include "base/types.h"

struct address_space;
struct process;
struct stub_area;
struct target;
struct thread;

/*
 * Installs the handler in @s; @th is one of its threads (NULL: none can work for us), all are
 * stopped. -errno: without it a breakpoint would kill the program if ptmem died. Also 0, and a
 * message, if no handler can be installed: the program has its own handler, or a seccomp filter.
 */
int trap_handler_install(struct target *t, struct address_space *s, struct thread *th);
/*
 * The program of @s has replaced the handler's page, whose contents were those of @old: another one
 * takes its place. @th makes the calls. 0 or -errno.
 */
int trap_handler_move(struct target *t, struct address_space *s, struct thread *th,
		      const struct stub_area *old);
/*
 * Restores the default action of SIGTRAP in all processes of @s that still have our handler. If a
 * seccomp filter that a process has added since forbids that, the handler stays: has_handler of the
 * journal.
 */
void trap_handler_remove(struct target *t, struct address_space *s);
/* @th is at one of our breakpoints: blocks SIGTRAP again if it was blocked before. */
void trap_handler_restore_mask(struct target *t, struct thread *th);
/*
 * When a thread that blocks SIGTRAP hits a breakpoint, or one that blocks SIGSEGV accesses unmapped
 * memory, the kernel unblocks @sig and resets its action to the default (force_sig_info_to_task).
 * So if the action is not the default, it was not blocked; otherwise a mask that contains all other
 * signals also contained @sig: it is blocked again. Returns whether it was.
 */
bool trap_handler_restore_blocked(struct thread *th, int sig);
/* Whether the handler's page is at @page in @s. */
bool trap_handler_is_page(const struct address_space *s, taddr_t page);

#endif
