/*
 * Which threads of an ending process have passed their exit stops. A stop is missed if a thread is
 * resumed from an earlier one just when it has been killed. Internal to src/tracee.
 */
#ifndef PTMEM_TRACEE_CONTROL_EXIT_STOPS_H
#define PTMEM_TRACEE_CONTROL_EXIT_STOPS_H

#include <stdbool.h>

struct target;
struct thread;

/*
 * @th is at its exit stop. Whether no stop of another thread of its process is still to come; those
 * that are not marked as exiting have missed theirs then. @is_group_end: all threads were killed.
 */
bool exit_stops_are_over(const struct target *t, const struct thread *th, bool is_group_end);

#endif
