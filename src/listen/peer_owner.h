/* Which user is at the other end of a connection within this machine. */
#ifndef PTMEM_LISTEN_PEER_OWNER_H
#define PTMEM_LISTEN_PEER_OWNER_H

#include <sys/types.h>

/*
 * The owner of the socket that the TCP connection @fd leads to, if that is on this machine. The
 * kernel knows it (sock_diag(7)). 0 or -errno; -ENOENT: there is no such socket (any more).
 */
int peer_owner_find(int fd, uid_t *out);

#endif
