/* See http_target.h. */
#include "listen/http_target.h"

#include <string.h>
#include <strings.h>

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

enum http_path http_target_find(const char *path)
{
	static const char *const paths[HTTP_PATHS] = {
		[HTTP_REPORT] = "/", [HTTP_JSON] = "/profile.json", [HTTP_RECORDING] = "/recording",
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
