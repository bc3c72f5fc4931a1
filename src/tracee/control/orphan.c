/*
 * Finds the parent of a process whose first stop came before any event for it. Normally the
 * parent's event follows a moment later. If the parent was killed in between, it never comes, and
 * the child would wait forever: so when a process ends, its unannounced children are searched for.
 * Children of living parents, which will still report them, must not be mistaken for its own: they
 * have another address space, with other pads.
 */
#include "tracee/control/orphan.h"

#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* ASLR places each image at random addresses; a fork has those of its parent. */
static bool is_image_of(const struct address_space *s, const struct maps *maps)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		const struct map *map = maps_find(maps, m->start);
		if ((i == 0 || m->is_vdso) && (!map || map->start != m->start))
			return false;
	}
	return true;
}

bool orphan_is_of(const struct target *t, const struct process *dying, pid_t child)
{
	struct proc_status status;
	struct maps maps;
	if (proc_status_read(child, &status) != 0 || status.process != child)
		return false; /* a thread: the event of its creator is still to come */
	const struct process *parent = process_find(t, status.parent);
	if (maps_read(child, &maps) != 0)
		return false;
	bool is_orphan = is_image_of(dying->space, &maps) &&
			 (!parent || parent == dying || !is_image_of(parent->space, &maps));
	maps_deinit(&maps);
	return is_orphan;
}
