/* Samples of the stack pointers of threads. */
#ifndef PTMEM_TRACEE_CONTROL_SAMPLE_H
#define PTMEM_TRACEE_CONTROL_SAMPLE_H

struct target;
struct thread;

/* Samples all threads: sleeping ones at once, running ones at the stop for an interrupt. */
void sample_threads(struct target *t);
/* @th is at that stop. */
void sample_take(struct target *t, struct thread *th);

#endif
