/* Finds the user at the other end of a connection within this machine. */
#ifndef PTMEM_LISTEN_PEER_OWNER_H
#define PTMEM_LISTEN_PEER_OWNER_H

#include <sys/types.h>

/*
 * The owner of the other end of the TCP connection @fd, if that is on this machine, by
 * sock_diag(7). Returns 0 or -errno; -ENOENT if there is no such socket (any more).
 */
int peer_owner_find(int fd, uid_t *out);

#endif
