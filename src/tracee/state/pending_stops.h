/*
 * Stops that were consumed from the kernel but not handled yet.
 *
 *	unannounced  first stops of threads whose parent's fork or clone event is still to come
 *	deferred     ends of threads, seen while these worked for ptmem
 */
#ifndef PTMEM_TRACEE_STATE_PENDING_STOPS_H
#define PTMEM_TRACEE_STATE_PENDING_STOPS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/vec.h"
#include "tracee/os/wait.h"

/* All zeros: empty. Private to pending_stops.c, except for loops over unannounced. */
struct pending_stops {
	VEC(struct wait_report) unannounced;
	VEC(struct wait_report) deferred;
};

void pending_stops_deinit(struct pending_stops *ps);

void pending_stops_add_unannounced(struct pending_stops *ps, pid_t tid, int status);
/* Removes the entry of @tid; false if there is none. */
bool pending_stops_take_unannounced(struct pending_stops *ps, pid_t tid, int *status_out);

void pending_stops_defer(struct pending_stops *ps, pid_t tid, int status);
/* Removes one of the deferred stops; false if there is none. */
bool pending_stops_take_deferred(struct pending_stops *ps, struct wait_report *out);
/* Whether the exit stop of @tid is among them. */
bool pending_stops_has_exit(const struct pending_stops *ps, pid_t tid);
/* Drops the deferred stops of @tid. */
void pending_stops_drop_deferred(struct pending_stops *ps, pid_t tid);

#endif
