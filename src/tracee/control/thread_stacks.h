/* The bounds of threads' stacks. All functions do nothing if the sink has no stack_new. */
#ifndef PTMEM_TRACEE_CONTROL_THREAD_STACKS_H
#define PTMEM_TRACEE_CONTROL_THREAD_STACKS_H

struct address_space;
struct target;
struct thread;

/* Reports the threads of @s, which are stopped, as the first ones. */
void thread_stacks_begin(struct target *t, struct address_space *s);
/* @parent is at the system call that created @started. */
void thread_stacks_thread_started(struct target *t, struct thread *parent, struct thread *started);
/* @th is at its exit stop; other threads of its process continue. */
void thread_stacks_exit(struct target *t, struct thread *th);

#endif
