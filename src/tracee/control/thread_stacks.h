/* Where the stacks of threads are. All functions do nothing where the sink has no stack_new. */
#ifndef PTMEM_TRACEE_CONTROL_THREAD_STACKS_H
#define PTMEM_TRACEE_CONTROL_THREAD_STACKS_H

struct address_space;
struct target;
struct thread;

/* The threads of @s, which are stopped, are the first that the sink hears of. */
void thread_stacks_begin(struct target *t, struct address_space *s);
/* @parent is at the system call that created @started. */
void thread_stacks_thread_started(struct target *t, struct thread *parent, struct thread *started);
/* @th is at its exit stop, and others of its process live on. */
void thread_stacks_exit(struct target *t, struct thread *th);

#endif
