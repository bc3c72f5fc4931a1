/* System calls that a mere stop interrupts. */
#ifndef PTMEM_TRACEE_INJECT_RESTART_H
#define PTMEM_TRACEE_INJECT_RESTART_H

struct target;
struct thread;

/* Makes @th repeat the call that failed with -EINTR because of our stop. */
void inject_restart_interrupted(struct target *t, struct thread *th);

#endif
