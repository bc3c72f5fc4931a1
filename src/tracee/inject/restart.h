/* System calls that a mere stop interrupts. */
#ifndef PTMEM_TRACEE_INJECT_RESTART_H
#define PTMEM_TRACEE_INJECT_RESTART_H

struct target;
struct thread;

/* Makes @th repeat the call that a stop of ours made fail with -EINTR. */
void inject_restart_interrupted(struct target *t, struct thread *th);

#endif
