/* Stops at execve. */
#ifndef PTMEM_TRACEE_CONTROL_EXEC_H
#define PTMEM_TRACEE_CONTROL_EXEC_H

struct target;
struct thread;

/* Handles the stop of @th at an execve: the space ends; the new image is followed or detached. */
void exec_serve(struct target *t, struct thread *th);
/*
 * @th is at the first instruction of an image that survives ptmem: installs the handler, then
 * probes.
 */
void exec_start_image(struct target *t, struct thread *th);

#endif
