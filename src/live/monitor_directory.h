/*
 * The directory of the sockets: $XDG_RUNTIME_DIR/ptmem, else /tmp/ptmem-UID; mode 0700, owned by
 * the user. The peer of each connection must be that user or root.
 */
#ifndef PTMEM_MONITOR_DIRECTORY_H
#define PTMEM_MONITOR_DIRECTORY_H

#include <sys/types.h>

/* The @i-th directory to try for user @uid; NULL: no more. The caller frees it. */
char *monitor_directory(uid_t uid, unsigned i);
/* Creates @directory if it does not exist: 0 or -errno. -EPERM: others have access to it. */
int monitor_directory_make(const char *directory);
/* A descriptor that holds the lock of @directory; negative: another process holds it. */
int monitor_directory_lock(const char *directory);
/* Removes sockets without a living owner from @directory, which is locked. */
void monitor_directory_sweep(const char *directory);

#endif
