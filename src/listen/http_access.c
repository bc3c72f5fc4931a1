#include "listen/http_access.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/types.h"

#define HOST_SIZE 256

/* Splits "HOST:PORT" or "[HOST]:PORT". If PORT is missing it becomes "". */
static bool split(const char *text, char host[static HOST_SIZE], const char **port_out)
{
	bool has_brackets = *text == '[';
	const char *start = text + has_brackets;
	size_t size = strcspn(start, has_brackets ? "]" : ":");

	if (size >= HOST_SIZE || (has_brackets && start[size] != ']'))
		return false;
	memcpy(host, start, size);
	host[size] = '\0';
	const char *rest = start + size + has_brackets;

	if (*rest && *rest != ':')
		return false;
	*port_out = *rest ? rest + 1 : rest;
	return true;
}

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

static bool parse_port(const char *text, in_port_t *out)
{
	if (!is_number(text) || strlen(text) > 5 || atoi(text) > UINT16_MAX)
		return false;
	*out = htons((uint16_t)atoi(text));
	return true;
}

/* Whether @text is an IPv4 or IPv6 address. */
static bool parse_host(const char *text, struct listen_address *out)
{
	*out = (struct listen_address){.v4.sin_family = AF_INET, .size = sizeof(out->v4)};
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1)
		return true;
	*out = (struct listen_address){.v6.sin6_family = AF_INET6, .size = sizeof(out->v6)};
	return inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1;
}

const char *listen_address_parse(const char *text, struct listen_address *out)
{
	char host[HOST_SIZE] = "127.0.0.1";
	const char *port = "0";
	struct listen_address found;
	in_port_t number;

	if (is_number(text))
		port = text;
	else if (*text && !split(text, host, &port))
		return "it takes ADDRESS:PORT, with [ ] around an IPv6 address";
	if (strcasecmp(host, "localhost") == 0)
		strcpy(host, "127.0.0.1");
	if (!*host)
		return "it takes an address before the port; 0.0.0.0 is all of IPv4";
	if (!parse_host(host, &found))
		return "names are not looked up: give it an address, as in 127.0.0.1:8080";
	if (!parse_port(*port ? port : "0", &number))
		return "a port is a number up to 65535";
	if (found.any.sa_family == AF_INET)
		found.v4.sin_port = number;
	else
		found.v6.sin6_port = number;
	*out = found;
	return NULL;
}

bool listen_address_is_loopback(const struct listen_address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

char *listen_address_url(const struct listen_address *a)
{
	char host[INET6_ADDRSTRLEN] = "";
	bool is_v4 = a->any.sa_family == AF_INET;
	const void *from = is_v4 ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr;

	inet_ntop(a->any.sa_family, from, host, sizeof(host));
	return xasprintf(is_v4 ? "http://%s:%u/" : "http://[%s]:%u/", host,
			 ntohs(is_v4 ? a->v4.sin_port : a->v6.sin6_port));
}

bool listen_address_is_own_host(const char *header, const char *own_name)
{
	char host[HOST_SIZE];
	struct listen_address address;
	const char *port;
	in_port_t number;

	if (!split(header, host, &port) || (*port && !parse_port(port, &number)))
		return false;
	return parse_host(host, &address) || strcasecmp(host, "localhost") == 0 ||
	       (*own_name && strcasecmp(host, own_name) == 0);
}

#define MAX_ARGUMENTS 16
#define SCHEME "http://"

bool http_target_parse(const char *text, struct http_target *out)
{
	const char *host = text + strlen(SCHEME);

	*out = (struct http_target){.path = text};
	if (strncasecmp(text, SCHEME, strlen(SCHEME)) != 0)
		return true;
	size_t size = strcspn(host, "/");

	if (size >= sizeof(out->host))
		return false;
	memcpy(out->host, host, size);
	out->path = host[size] ? host + size : "/";
	return true;
}

const char http_target_list[] =
	"/                    the report\n"
	"/profile.json        its data\n"
	"/recording           the recording, for ptmem-report\n"
	"/graph.json          the last heap graph; POST makes one\n"
	"/debug/pprof/heap    for pprof: what is in use\n"
	"/debug/pprof/allocs  for pprof: all allocations\n"
	"/metrics             for Prometheus and OpenTelemetry\n"
	"/healthz             whether ptmem answers\n"
	"?pid=N is about one process, ?seconds=N of pprof's about the next N seconds\n";

enum http_path http_target_find(const char *path)
{
	static const char *const paths[HTTP_PATHS] = {
		[HTTP_REPORT] = "/", [HTTP_JSON] = "/profile.json", [HTTP_RECORDING] = "/recording",
		[HTTP_GRAPH] = "/graph.json",
		[HTTP_HEAP] = "/debug/pprof/heap", [HTTP_ALLOCS] = "/debug/pprof/allocs",
		[HTTP_METRICS] = "/metrics", [HTTP_HEALTH] = "/healthz",
	};
	unsigned found = 0;

	while (found < HTTP_PATHS && strcmp(path, paths[found]) != 0)
		found++;
	return (enum http_path)found;
}

bool http_target_number(const char *text, uint32_t most, uint32_t *out)
{
	uint64_t value = 0;

	for (const char *s = text; s && *s; s++) {
		if (*s < '0' || *s > '9' || value > most)
			return false;
		value = value * 10 + (uint64_t)(*s - '0');
	}
	*out = (uint32_t)value;
	return value <= most && (!text || *text);
}

bool http_target_is_sound(const char *text)
{
	size_t count = 1;

	for (const char *c = text; (c = strchr(c, '&')); c++)
		count++;
	return count <= MAX_ARGUMENTS && !strstr(text, "%00");
}

#define MIN_TOKEN 16
#define MAX_TOKEN 256

static void warn_if_open(const char *path, FILE *file)
{
	struct stat st;

	if (fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 077))
		log_warn("--listen-token: %s: others may read it (mode %03o); it should be 600",
			 path, st.st_mode & 0777);
}

const char *http_token_read(const char *path, char **token_out)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	char line[MAX_TOKEN + 2];

	if (!file)
		return strerror(errno);
	if (!fgets(line, sizeof(line), file))
		return ferror(file) ? strerror(errno) : "it is empty";
	line[strcspn(line, "\r\n")] = '\0';
	if (strlen(line) < MIN_TOKEN || strlen(line) > MAX_TOKEN)
		return "its first line, the token, must have 16 to 256 characters";
	for (const char *s = line; *s; s++)
		if (*s <= ' ' || *s > '~')
			return "a token has printable ASCII characters and no spaces";
	warn_if_open(path, file);
	*token_out = xstrdup(line);
	return NULL;
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* Decodes @base64 up to the first character that is not a base64 digit. */
static void decode(const char *base64, char *out, size_t size)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t used = 0;

	for (; digit(*base64) >= 0 && used + 1 < size; base64++) {
		bits = bits << 6 | (uint32_t)digit(*base64);
		count += 6;
		if (count < 8)
			continue;
		count -= 8;
		out[used++] = (char)(bits >> count);
	}
	out[used] = '\0';
}

static bool is_equal(const char *given, const char *token)
{
	size_t n = strlen(given), size = strlen(token);
	unsigned differs = n != size;

	for (size_t i = 0; i < size; i++)
		differs |= (unsigned)(token[i] ^ (i < n ? given[i] : 0));
	return !differs;
}

bool http_token_is_right(const char *header, const char *token)
{
	char pair[2 * MAX_TOKEN];

	if (!header)
		return false;
	if (strncasecmp(header, "Bearer ", 7) == 0)
		return is_equal(header + 7, token);
	if (strncasecmp(header, "Basic ", 6) != 0)
		return false;
	decode(header + 6, pair, sizeof(pair));
	const char *colon = strchr(pair, ':');

	return colon && is_equal(colon + 1, token);
}

/* Asks the kernel for the socket that has the same addresses as ours, exchanged. */

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
