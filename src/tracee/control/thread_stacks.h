/*
 * The bounds of threads' stacks (these functions do nothing if the sink has no stack_new), and
 * samples of stack pointers.
 */
#ifndef PTMEM_TRACEE_CONTROL_THREAD_STACKS_H
#define PTMEM_TRACEE_CONTROL_THREAD_STACKS_H

struct address_space;
struct target;
struct thread;

/* Reports the threads of @s, which are stopped, as the first ones. */
void thread_stacks_begin(struct target *t, struct address_space *s);
/* @parent is at the system call that created @started. */
void thread_stacks_thread_started(struct target *t, struct thread *parent, struct thread *started);
/* @th is at its exit stop, at which it still has its stack: samples that. */
void thread_stacks_last(struct target *t, struct thread *th);
/* @th is at its exit stop; other threads of its process continue. */
void thread_stacks_exit(struct target *t, struct thread *th);

/* Samples of the stack pointers of threads. */

/* Samples all threads: sleeping ones at once, running ones at the stop for an interrupt. */
void sample_threads(struct target *t);
/* @th is at that stop. */
void sample_take(struct target *t, struct thread *th);

#endif
