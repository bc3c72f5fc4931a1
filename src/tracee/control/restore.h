/* Memory of ptmem in the program that the program has unmapped. */
#ifndef PTMEM_TRACEE_CONTROL_RESTORE_H
#define PTMEM_TRACEE_CONTROL_RESTORE_H

#include <stdbool.h>

struct address_space;
struct target;
struct thread;

/*
 * @th stopped for SIGSEGV. True if it could not access code of ptmem, or a pad its memory, since
 * the program had unmapped it: it is mapped again, and @th, which may be gone, continues.
 */
bool restore_serve_fault(struct target *t, struct thread *th);
/* Maps again what @s lacks; all threads are stopped. */
void restore_space(struct target *t, struct address_space *s);

#endif
