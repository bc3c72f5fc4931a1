/* Whether the seccomp filters of ptmem itself allow the calls that it injects. */
#ifndef PTMEM_TRACEE_INJECT_SECCOMP_TRIAL_H
#define PTMEM_TRACEE_INJECT_SECCOMP_TRIAL_H

struct target;

/*
 * Before ptmem forks a child that is to execute the program: if ptmem has filters, a child process
 * tries the calls. Fills in t->inherited.
 */
void seccomp_trial_run(struct target *t);

#endif
