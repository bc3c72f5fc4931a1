/*
 * Settings of ptmem's own process that are changed while it traces. A program that it starts must
 * not inherit them.
 */
#ifndef PTMEM_TRACEE_CONTROL_OWN_SETTINGS_H
#define PTMEM_TRACEE_CONTROL_OWN_SETTINGS_H

struct own_settings;

/*
 * Blocks SIGCHLD, and raises the limit of open files. Returns the old settings; the caller frees
 * them.
 */
struct own_settings *own_settings_change(void);
/* In a child: restores the old settings. */
void own_settings_restore(const struct own_settings *old);

#endif
