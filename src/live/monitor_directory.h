/*
 * The directory of the sockets: $XDG_RUNTIME_DIR/ptmem, else /tmp/ptmem-UID; mode 0700, owned by
 * the user. The peer of each connection must be that user or root.
 */
#ifndef PTMEM_MONITOR_DIRECTORY_H
#define PTMEM_MONITOR_DIRECTORY_H

#include <sys/types.h>

/* The directory of user @uid, the @i-th to try; NULL: no more. The caller frees it. */
char *monitor_directory(uid_t uid, unsigned i);
/* Creates @directory if it does not exist: 0 or -errno. -EPERM: it is not the user's alone. */
int monitor_directory_make(const char *directory);
/* The descriptor that holds the lock of @directory; negative: another process keeps it. */
int monitor_directory_lock(const char *directory);
/* Removes sockets without a living owner from @directory, which is locked. */
void monitor_directory_sweep(const char *directory);

#endif
