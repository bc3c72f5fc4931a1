/* Inserts parts before the extension of a name. */
#include "session/file_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"

/* The length of @path without its extension. */
static size_t stem_size(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	const char *name = slash ? slash + 1 : path;
	bool has_extension = dot && dot > name && dot[1] && dot[1 + strspn(dot + 1, "0123456789")];

	return has_extension ? (size_t)(dot - path) : strlen(path);
}

bool file_name_is_shared(const char *path)
{
	struct stat st;

	return strcmp(path, "-") == 0 ||
	       (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

char *file_name_insert(const char *path, const struct file_name_parts *parts)
{
	char *text = NULL;
	size_t size, stem = stem_size(path);

	if (file_name_is_shared(path))
		return xstrdup(path);
	FILE *f = open_memstream(&text, &size);

	CHECK(f);
	fwrite(path, 1, stem, f);
	if (parts->source)
		fprintf(f, ".%s", parts->source);
	if (parts->pid)
		fprintf(f, ".%u", parts->pid);
	if (parts->part)
		fprintf(f, ".%03u", parts->part);
	if (parts->number)
		fprintf(f, ".%u", parts->number);
	fputs(path + stem, f);
	CHECK(fclose(f) == 0);
	return text;
}

bool file_name_has(const char *pattern, const char *letters)
{
	for (const char *s = strchr(pattern, '%'); s && s[1]; s = strchr(s + 2, '%')) {
		if (strchr(letters, s[1]))
			return true;
	}
	return false;
}
