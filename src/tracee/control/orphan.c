/*
 * The parent of a process that has stopped for the first time, and was not announced.
 *
 * Normally its parent's event follows a moment later. If the parent was killed in between, there
 * is none, and the child would wait forever: so when a process ends, its
 * unannounced children are looked for. Others, whose living parents will still announce
 * them, must not be taken for its own: they have another address space, with other pads.
 */
#include "tracee/control/orphan.h"

#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/state/module.h"
#include "tracee/state/space.h"
#include "tracee/state/target_internal.h"
#include "tracee/state/thread.h"

/* Programs lie at random places, each image at its own; a fork is where its parent is. */
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
	if (proc_status_read(child, &status) != 0)
		return false;
	const struct process *parent = process_find(t, status.parent);
	if (maps_read(child, &maps) != 0)
		return false;
	bool is_orphan = is_image_of(dying->space, &maps) &&
			 (!parent || parent == dying || !is_image_of(parent->space, &maps));
	maps_deinit(&maps);
	return is_orphan;
}
