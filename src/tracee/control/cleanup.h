/* The guardian's work after ptmem's death. */
#ifndef PTMEM_TRACEE_CONTROL_CLEANUP_H
#define PTMEM_TRACEE_CONTROL_CLEANUP_H

struct journal;

/*
 * Undoes the changes recorded in @journals (JOURNALS of them). The calling process must exit
 * afterwards.
 */
void cleanup_run(struct journal *journals);

#endif
