/* See cgroup.h. Lines are "0::PATH" (version 2) and "NUMBER:CONTROLLERS:PATH" (version 1). */
#include "base/cgroup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"

struct line {
	const char *controllers, *path; /* up to the end of the line */
	size_t controllers_size, path_size;
};

/* Takes the next line of *@text that names a group. False at the end. */
static bool next_line(const char **text, struct line *out)
{
	while (**text) {
		const char *line = *text, *end = line + strcspn(line, "\n");
		const char *first = memchr(line, ':', (size_t)(end - line));
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;

		*text = *end ? end + 1 : end;
		if (!second || second[1] != '/')
			continue;
		*out = (struct line){first + 1, second + 1, (size_t)(second - first - 1),
				     (size_t)(end - second - 1)};
		return true;
	}
	return false;
}

static bool has_controller(const struct line *l, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = l->controllers, *end = s + l->controllers_size; s < end;) {
		size_t size = strcspn(s, ",:");

		if (size == n && memcmp(s, name, n) == 0)
			return true;
		s += size + 1;
	}
	return false;
}

/* How well a line names the group of a process; 0 is best. */
static unsigned rank(const struct line *l)
{
	if (l->path_size == 1) /* the root: the other version is in use, or another controller */
		return l->controllers_size ? 5 : 4;
	if (!l->controllers_size)
		return 0;
	return has_controller(l, "memory") ? 1 : has_controller(l, "name=systemd") ? 2 : 3;
}

char *cgroup_parse(const char *text)
{
	struct line l, best = {0};

	while (next_line(&text, &l)) {
		if (!best.path || rank(&l) < rank(&best))
			best = l;
	}
	return best.path ? xstrndup(best.path, best.path_size) : NULL;
}

#define FILE_MAX 65536

char *cgroup_read_text(pid_t pid)
{
	_cleanup_fclose_ FILE *file = proc_open(pid, "cgroup");
	char *text = file ? xmalloc(FILE_MAX) : NULL;

	if (text)
		text[fread(text, 1, FILE_MAX - 1, file)] = '\0';
	return text;
}

char *cgroup_read(pid_t pid)
{
	_cleanup_free_ char *text = cgroup_read_text(pid);

	return text ? cgroup_parse(text) : NULL;
}

static bool ends_component(char c)
{
	return c == '\0' || c == '\n' || c == '/';
}

bool cgroup_is_within(const char *text, const char *group)
{
	size_t n = strlen(group);
	struct line l;

	while (n > 0 && group[n - 1] == '/')
		n--;
	while (next_line(&text, &l)) {
		if (n <= l.path_size && memcmp(l.path, group, n) == 0 &&
		    ends_component(l.path[n]))
			return true;
	}
	return false;
}

static bool has_component(const struct line *l, const char *name)
{
	size_t n = strlen(name);

	for (const char *s = l->path, *end = s + l->path_size; s < end; s++) {
		if (*s == '/' && n < (size_t)(end - s) && memcmp(s + 1, name, n) == 0 &&
		    ends_component(s[1 + n]))
			return true;
	}
	return false;
}

bool cgroup_has_component(const char *text, const char *name)
{
	struct line l;

	while (next_line(&text, &l)) {
		if (has_component(&l, name))
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
