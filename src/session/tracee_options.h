/* The tracee options of a run. */
#ifndef PTMEM_TRACEE_OPTIONS_H
#define PTMEM_TRACEE_OPTIONS_H

struct run;
struct target_options;

/* Computes all of @out from the options of @run. */
void tracee_options_init(struct target_options *out, const struct run *run);

#endif
