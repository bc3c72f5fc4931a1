/*
 * Settings of ptmem's own process that it changes while it traces. A program that it starts must
 * not inherit them.
 */
#ifndef PTMEM_TRACEE_CONTROL_OWN_SETTINGS_H
#define PTMEM_TRACEE_CONTROL_OWN_SETTINGS_H

struct own_settings;

/* Blocks SIGCHLD, and raises the limit of open files. Returns what was; the caller frees it. */
struct own_settings *own_settings_change(void);
/* In a child: as it was before. */
void own_settings_restore(const struct own_settings *old);

#endif
