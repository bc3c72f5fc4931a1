/*
 * See same_file.h.
 */
#include "base/same_file.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define MAX_LINKS 40 /* as many as the kernel follows */

static void take_stat(struct file_id *id, const struct stat *st)
{
	id->device = st->st_dev;
	id->inode = st->st_ino;
	id->is_known = S_ISREG(st->st_mode) || S_ISDIR(st->st_mode);
}

static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? xasprintf("%.*s", (int)(slash + 1 - path), path) : xstrdup(".");
}

/* The target of the symbolic link @path; NULL if it is not one. */
static char *link_target(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = '\0';
	if (*target == '/')
		return xstrdup(target);
	_cleanup_free_ char *directory = directory_of(path);

	return xasprintf("%s/%s", directory, target);
}

/* @path does not exist: identifies the file that would be created. */
static void take_new(struct file_id *id, const char *path)
{
	char *at = xstrdup(path), *next;
	struct stat st;

	for (int i = 0; i < MAX_LINKS && (next = link_target(at)); i++) {
		free(at);
		at = next;
	}
	_cleanup_free_ char *directory = directory_of(at);
	const char *slash = strrchr(at, '/');

	if (stat(directory, &st) == 0) {
		take_stat(id, &st);
		id->name = xstrdup(slash ? slash + 1 : at);
	}
	free(at);
}

void file_id_init(struct file_id *id, const char *path)
{
	struct stat st;

	*id = (struct file_id){0};
	if (strcmp(path, "-") == 0)
		return;
	if (stat(path, &st) == 0)
		take_stat(id, &st);
	else
		take_new(id, path);
}

void file_id_init_fd(struct file_id *id, int fd)
{
	struct stat st;

	*id = (struct file_id){0};
	if (fstat(fd, &st) == 0)
		take_stat(id, &st);
}

void file_id_deinit(struct file_id *id)
{
	free(id->name);
	id->name = NULL;
}

bool file_id_is_same(const struct file_id *a, const struct file_id *b)
{
	if (!a->is_known || !b->is_known || a->device != b->device || a->inode != b->inode)
		return false;
	return !a->name || !b->name ? !a->name && !b->name : strcmp(a->name, b->name) == 0;
}

bool same_file(const char *a, const char *b)
{
	struct file_id x, y;

	file_id_init(&x, a);
	file_id_init(&y, b);
	bool is_same = file_id_is_same(&x, &y);

	file_id_deinit(&x);
	file_id_deinit(&y);
	return is_same;
}
