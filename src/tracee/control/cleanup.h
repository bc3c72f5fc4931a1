/* What the guardian does once ptmem is gone. */
#ifndef PTMEM_TRACEE_CONTROL_CLEANUP_H
#define PTMEM_TRACEE_CONTROL_CLEANUP_H

struct journal;

/* Undoes what @journals (JOURNALS of them) record. The calling process must exit afterwards. */
void cleanup_run(struct journal *journals);

#endif
