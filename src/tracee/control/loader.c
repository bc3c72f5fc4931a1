/*
 * It calls _dl_debug_state twice for each change, and stores in its struct r_debug which of the two
 * it is (link.h):
 *
 *	RT_ADD, RT_DELETE   begins: nothing is mapped or unmapped yet
 *	RT_CONSISTENT       the change is complete
 *
 * There is one struct for each namespace (dlmopen), and only the first is known here. The state
 * that it had at the last stop distinguishes the start of its own change from another namespace's
 * change meanwhile.
 */
#include "tracee/control/loader.h"

#include <link.h>

#include "base/elf_file.h"
#include "tracee/state/module.h"
#include "tracee/state/probe.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"
#include "tracee/state/space_modules.h"
#include "tracee/state/trap.h"

bool loader_has_changed(struct address_space *s, const struct trap *trap)
{
	const struct module *m = space_find_module(s, trap->addr);
	struct r_debug now;

	if (!m || !m->sites || !m->sites->r_debug ||
	    space_read(s, m->bias + m->sites->r_debug, &now, sizeof(now)) != 0)
		return true;
	bool begins = now.r_state != RT_CONSISTENT && !s->watch.is_loading;
	s->watch.is_loading = now.r_state != RT_CONSISTENT;
	return !begins;
}

bool loader_is_there(const struct address_space *s)
{
	for (size_t i = 0; i < s->modules.count; i++) {
		const struct module *m = s->modules.data[i];
		if (!m->is_vdso && (!m->file || m->file->has_interp))
			return true;
	}
	for (size_t i = 0; i < s->traps.count; i++) {
		const struct trap *trap = &s->traps.data[i];
		if (trap->kind == TRAP_ENTRY && trap->probe->kind == PROBE_LOADER)
			return true;
	}
	return false;
}
