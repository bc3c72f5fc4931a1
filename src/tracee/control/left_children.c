/* See left_children.h. Polls /proc. */
#include "tracee/control/left_children.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "tracee/control/control.h"
#include "tracee/os/maps.h"
#include "tracee/state/target_state.h"

#define MOST_READ 256u
#define LONGEST_WAIT_NS 1000000000u
#define SLACK (UINT64_C(1) << 20) /* by which counters of one process may differ */

/* The most that @pid had resident so far, in bytes; 0 = unknown. */
static uint64_t read_peak(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "status");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	uint64_t peak = 0;

	while (f && getline(&line, &size, f) > 0 && !maps_take_bytes(line, "VmHWM:", &peak))
		;
	return peak;
}

/* The most that @who (getrusage(2)) had resident, in bytes. */
static uint64_t most_resident(int who)
{
	struct rusage usage = {0};

	return getrusage(who, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* Returns whether it still exists. */
static bool read_child(struct left_children *l, const struct left_child *child)
{
	struct proc_stat st;
	uint64_t bytes = read_peak(child->pid);

	if (proc_stat_read(child->pid, &st) != 0 || st.started != child->started)
		return false;
	if (bytes > l->largest_bytes) {
		l->largest_bytes = bytes;
		proc_read_comm(child->pid, l->largest);
	}
	return bytes > 0;
}

void left_children_add(struct target *t, pid_t pid)
{
	struct left_children *l = &t->control->left;
	struct proc_stat st;

	if (!l->count)
		l->waited_bytes = most_resident(RUSAGE_CHILDREN);
	l->count++;
	if (l->list.count >= MOST_READ || proc_stat_read(pid, &st) != 0)
		return;
	*vec_add(&l->list) = (struct left_child){
		.pid = pid, .started = st.started,
		.next_ns = clock_now_ns() + LEFT_CHILDREN_WAIT_NS,
		.wait_ns = LEFT_CHILDREN_WAIT_NS};
}

void left_children_note_ended(struct target *t)
{
	t->control->left.count++;
}

uint64_t left_children_poll(struct target *t, uint64_t now_ns)
{
	struct left_children *l = &t->control->left;
	uint64_t next = UINT64_MAX;

	for (size_t i = l->list.count; i-- > 0;) {
		struct left_child *child = &l->list.data[i];
		if (now_ns >= child->next_ns) {
			child->wait_ns = MIN(2 * child->wait_ns, (uint64_t)LONGEST_WAIT_NS);
			child->next_ns = now_ns + child->wait_ns;
			if (!read_child(l, child)) {
				vec_take_swap(&l->list, i);
				continue;
			}
		}
		next = MIN(next, child->next_ns);
	}
	return next;
}

/*
 * The most that one of them had, as the kernel knows it, in bytes; 0: it knows nothing of them. An
 * own process of ptmem is a copy of it, and a child before its exec one of a profiled process.
 */
static uint64_t find_largest(const struct left_children *l, uint64_t profiled)
{
	uint64_t bytes = most_resident(RUSAGE_CHILDREN);
	uint64_t others = MAX(MAX(profiled, most_resident(RUSAGE_SELF)), l->waited_bytes);

	return profiled && l->waited_bytes < bytes && others + SLACK < bytes ? bytes : 0;
}

#define MATTERS (UINT64_C(1) << 20) /* less, of a process seen briefly, says nothing */

/* ", the largest ...", to be freed. */
static char *largest_text(const struct left_children *l, uint64_t bytes)
{
	char size[AMOUNT_SIZE], read[AMOUNT_SIZE];

	amount_bytes((double)l->largest_bytes, read);
	amount_bytes((double)bytes, size);
	if (!bytes && l->largest_bytes < MATTERS)
		return xstrdup("");
	if (!bytes)
		return xasprintf(", the largest that was seen running is %s with at least %s "
				 "resident", l->largest, read);
	if (!l->largest_bytes)
		return xasprintf(", the largest with %s resident", size);
	if (l->largest_bytes + SLACK >= bytes)
		return xasprintf(", the largest %s with %s resident", l->largest, size);
	return xasprintf(", the largest with %s resident (%s had %s when it was last seen "
			 "running)", size, l->largest, read);
}

void left_children_report(struct target *t, uint64_t profiled)
{
	struct left_children *l = &t->control->left;

	for (size_t i = 0; i < l->list.count; i++)
		read_child(l, &l->list.data[i]);
	if (!l->count)
		return;
	_cleanup_free_ char *largest = largest_text(l, find_largest(l, profiled));

	log_info("%u child process%s not profiled%s; --trace-children=yes follows them", l->count,
		 l->count == 1 ? " was" : "es were", largest);
}

void left_children_deinit(struct left_children *l)
{
	vec_deinit(&l->list);
}
