/* Two short lists, which rarely have more than one element. */
#include "tracee/state/pending_stops.h"

#include "tracee/os/stop.h"

void pending_stops_deinit(struct pending_stops *ps)
{
	vec_deinit(&ps->unannounced);
	vec_deinit(&ps->deferred);
}

void pending_stops_add_unannounced(struct pending_stops *ps, pid_t tid, int status)
{
	*vec_add(&ps->unannounced) = (struct wait_report){tid, status};
}

bool pending_stops_take_unannounced(struct pending_stops *ps, pid_t tid, int *status_out)
{
	for (size_t i = 0; i < ps->unannounced.count; i++) {
		if (ps->unannounced.data[i].tid == tid) {
			*status_out = ps->unannounced.data[i].status;
			vec_take_swap(&ps->unannounced, i);
			return true;
		}
	}
	return false;
}

void pending_stops_defer(struct pending_stops *ps, pid_t tid, int status)
{
	*vec_add(&ps->deferred) = (struct wait_report){tid, status};
}

bool pending_stops_take_deferred(struct pending_stops *ps, struct wait_report *out)
{
	if (ps->deferred.count == 0)
		return false;
	*out = ps->deferred.data[0];
	vec_take_swap(&ps->deferred, 0);
	return true;
}

bool pending_stops_has_exit(const struct pending_stops *ps, pid_t tid)
{
	for (size_t i = 0; i < ps->deferred.count; i++) {
		const struct wait_report *r = &ps->deferred.data[i];

		if (r->tid == tid && stop_decode(r->status).kind == STOP_EXIT)
			return true;
	}
	return false;
}

void pending_stops_drop_deferred(struct pending_stops *ps, pid_t tid)
{
	for (size_t i = ps->deferred.count; i-- > 0;) {
		if (ps->deferred.data[i].tid == tid)
			vec_take_swap(&ps->deferred, i);
	}
}
