/* See listen_address.h. */
#include "listen/listen_address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

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
