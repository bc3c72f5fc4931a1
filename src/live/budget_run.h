/* --budget: measures what ptmem costs, and changes the sampling interval of all sessions. */
#ifndef PTMEM_BUDGET_RUN_H
#define PTMEM_BUDGET_RUN_H

struct budget_run;
struct run;

/* Starts if requested; NULL: it was not. Observes @run until budget_stop. */
struct budget_run *budget_start(struct run *run);
/* NULL is ignored. */
void budget_stop(struct budget_run *b);

#endif
