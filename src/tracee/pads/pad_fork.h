/*
 * What a fork inherits of its parent's pads.
 */
#ifndef PTMEM_TRACEE_PADS_PAD_FORK_H
#define PTMEM_TRACEE_PADS_PAD_FORK_H

struct address_space;
struct target;
struct thread;

/*
 * @child was just forked from @parent by @th, which is at the fork (NULL: it is dead). It gets
 * breakpoints for its parent's pads; where @th is in a pad, or in what one called (its signal
 * handler forks), a copy of the pads instead, which pads_thread_started() makes.
 */
void pads_fork(struct target *t, struct address_space *parent, struct address_space *child,
	       struct thread *th);
/* @th is before its first instruction: a new thread, or the one of a fork. */
void pads_thread_started(struct target *t, struct thread *th);
/* Frees what pads_fork() noted for @s. */
void pads_drop_fork_snapshot(struct address_space *s);

#endif
