/* Asks the kernel for the socket that has the same addresses as ours, exchanged. */
#include "listen/peer_owner.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/types.h"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static __be16 port_of(const union address *a)
{
	return a->any.sa_family == AF_INET ? a->v4.sin_port : a->v6.sin6_port;
}

static void copy_address(const union address *a, __be32 out[4])
{
	if (a->any.sa_family == AF_INET)
		out[0] = a->v4.sin_addr.s_addr;
	else
		memcpy(out, &a->v6.sin6_addr, sizeof(a->v6.sin6_addr));
}

static void fill_question(struct question *q, const union address *own, const union address *peer)
{
	*q = (struct question){
		.head = {.nlmsg_len = sizeof(*q),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)own->any.sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0u},
	};
	q->body.id.idiag_sport = port_of(peer);
	q->body.id.idiag_dport = port_of(own);
	copy_address(peer, q->body.id.idiag_src);
	copy_address(own, q->body.id.idiag_dst);
	memset(q->body.id.idiag_cookie, 0xff, sizeof(q->body.id.idiag_cookie)); /* any interface */
}

static int ask(const struct question *q, uid_t *out)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;

	if (fd < 0 || send(fd, q, sizeof(*q), 0) != (ssize_t)sizeof(*q))
		return -errno;
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);

	if (n < (ssize_t)sizeof(answer.head))
		return n < 0 ? -errno : -EBADMSG;
	if (answer.head.nlmsg_type == NLMSG_ERROR) {
		const struct nlmsgerr *e = NLMSG_DATA(&answer.head);

		return n >= (ssize_t)NLMSG_LENGTH(sizeof(*e)) && e->error ? e->error : -EBADMSG;
	}
	const struct inet_diag_msg *m = NLMSG_DATA(&answer.head);

	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    n < (ssize_t)NLMSG_LENGTH(sizeof(*m)))
		return -EBADMSG;
	/* a closed socket has owner 0, which would look like root */
	if (!m->idiag_inode)
		return -ENOENT;
	*out = m->idiag_uid;
	return 0;
}

int peer_owner_find(int fd, uid_t *out)
{
	union address own, peer;
	socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
	struct question q;

	if (getsockname(fd, &own.any, &own_size) != 0 ||
	    getpeername(fd, &peer.any, &peer_size) != 0)
		return -errno;
	if (own.any.sa_family != peer.any.sa_family ||
	    (own.any.sa_family != AF_INET && own.any.sa_family != AF_INET6))
		return -EAFNOSUPPORT;
	fill_question(&q, &own, &peer);
	return ask(&q, out);
}
