/* Polls /proc. */
#include "tracee/control/left_children.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "tracee/control/control.h"
#include "tracee/state/target_state.h"

#define MOST_READ 256u
#define LONGEST_WAIT_NS 1000000000u

/* The most that @pid had resident so far, in bytes; 0 = unknown. */
static uint64_t read_peak(pid_t pid)
{
	_cleanup_fclose_ FILE *f = proc_open(pid, "status");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (strncmp(line, "VmHWM:", 6) == 0)
			return strtoull(line + 6, NULL, 10) * 1024;
	}
	return 0;
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

void left_children_report(struct target *t)
{
	struct left_children *l = &t->control->left;
	char size[AMOUNT_SIZE];

	for (size_t i = 0; i < l->list.count; i++)
		read_child(l, &l->list.data[i]);
	if (!l->count)
		return;
	if (l->largest_bytes)
		log_info("%u child process%s not profiled, the largest %s with %s resident when "
			 "last read; --trace-children=yes follows them",
			 l->count, l->count == 1 ? " was" : "es were", l->largest,
			 amount_bytes((double)l->largest_bytes, size));
	else
		log_info("%u child process%s not profiled; --trace-children=yes follows them",
			 l->count, l->count == 1 ? " was" : "es were");
}

void left_children_deinit(struct left_children *l)
{
	vec_deinit(&l->list);
}
