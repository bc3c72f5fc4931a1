/* Pads in a forked child. */
#ifndef PTMEM_TRACEE_PADS_PAD_FORK_H
#define PTMEM_TRACEE_PADS_PAD_FORK_H

struct address_space;
struct target;
struct thread;

/*
 * @child was just forked from @parent by @th, which is at the fork (NULL: it is dead). The child
 * gets breakpoints in place of its parent's pads. If @th is in a pad, or in code called by one (its
 * signal handler forks), it gets a copy of the pads instead, which pads_thread_started() creates.
 */
void pads_fork(struct target *t, struct address_space *parent, struct address_space *child,
	       struct thread *th);
/* @th is before its first instruction: a new thread, or that of a fork. */
void pads_thread_started(struct target *t, struct thread *th);
/* Replaces jumps by breakpoints. */
void pads_put_breakpoints(const struct target *t, struct address_space *s);
/* Frees the state that pads_fork() saved for @s. */
void pads_drop_fork_snapshot(struct address_space *s);

#endif
