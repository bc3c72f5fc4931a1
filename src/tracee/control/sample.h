/* Samples of the stack pointers of threads. */
#ifndef PTMEM_TRACEE_CONTROL_SAMPLE_H
#define PTMEM_TRACEE_CONTROL_SAMPLE_H

struct target;
struct thread;

/*
 * Samples all threads: those that sleep at once, those that run at the interrupt that this sends
 * them.
 */
void sample_threads(struct target *t);
/* @th is at the stop of that interrupt. */
void sample_take(struct target *t, struct thread *th);

#endif
