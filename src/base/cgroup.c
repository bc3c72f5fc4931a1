/* See cgroup.h. Lines are "0::PATH" (version 2) and "NUMBER:CONTROLLERS:PATH" (version 1). */
#include "base/cgroup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"

/* How well the line of @controllers names the group of a process; 0 is best. */
static unsigned rank(const char *line, const char *controllers, size_t size)
{
	if (strncmp(line, "0::", 3) == 0)
		return 0;
	return size == 12 && memcmp(controllers, "name=systemd", 12) == 0 ? 1 : 2;
}

char *cgroup_parse(const char *text)
{
	const char *best = NULL;
	size_t best_size = 0;
	unsigned best_rank = UINT32_MAX;

	for (const char *line = text; *line;) {
		size_t size = strcspn(line, "\n");
		const char *first = memchr(line, ':', size), *end = line + size;
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

		if (second && second[1] == '/') {
			unsigned r = rank(line, first + 1, (size_t)(second - first - 1));

			/* with both versions in use the path of version 2 may be the root */
			r += r == 0 && end - second == 2 ? 3 : 0;
			if (r < best_rank) {
				best_rank = r;
				best = second + 1;
				best_size = (size_t)(end - best);
			}
		}
		line = *end ? end + 1 : end;
	}
	return best ? xstrndup(best, best_size) : NULL;
}

#define FILE_MAX 65536

char *cgroup_read(pid_t pid)
{
	_cleanup_fclose_ FILE *file = proc_open(pid, "cgroup");
	_cleanup_free_ char *text = file ? xmalloc(FILE_MAX) : NULL;

	if (!text)
		return NULL;
	text[fread(text, 1, FILE_MAX - 1, file)] = '\0';
	return cgroup_parse(text);
}

bool cgroup_is_within(const char *path, const char *group)
{
	size_t n = strlen(group);

	while (n > 0 && group[n - 1] == '/')
		n--;
	return strncmp(path, group, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

bool cgroup_has_component(const char *path, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = path; (s = strchr(s, '/'));) {
		s++;
		if (strncmp(s, name, n) == 0 && (s[n] == '\0' || s[n] == '/'))
			return true;
	}
	return false;
}

void cgroup_container(const char *path, char id_out[CONTAINER_ID_SIZE])
{
	const size_t size = CONTAINER_ID_SIZE - 1;

	*id_out = '\0';
	for (const char *s = path; *s;) {
		size_t digits = 0;

		while (isxdigit((unsigned char)s[digits]))
			digits++;
		if (digits == size) {
			memcpy(id_out, s, size);
			id_out[size] = '\0';
		}
		s += digits ? digits : 1;
	}
}
