/*
 * Inserts parts before the extension of a file's name, and writes results, elsewhere if they
 * cannot be written to their place.
 */
#include "session/result_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/outfile.h"

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

int result_write(const struct result *r, const char *path)
{
	struct outfile out;
	int rc = outfile_open(path, &out);

	if (rc != 0)
		return rc;
	rc = r->put(out.file, r->ctx);
	if (rc == 0)
		return outfile_commit(&out);
	outfile_abort(&out);
	return rc;
}

/* The places to try, in this order; NULL or relative: none. */
enum { PLACES = 4 };

static const char *place(size_t i)
{
	static const char *const fixed[PLACES] = {NULL, "/tmp", "/var/tmp", "/dev/shm"};
	const char *path = i ? fixed[i] : getenv("TMPDIR");

	return path && path[0] == '/' ? path : NULL;
}

/* No other user can have put anything there. */
static bool is_own_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

static bool make_directory(char *path, bool is_named)
{
	if (!is_named)
		return mkdtemp(path);
	return mkdir(path, 0700) == 0 || is_own_directory(path);
}

/*
 * Uses a directory of its own, called @name or, if that is NULL, a new one, so that no link of
 * another user can interfere. Returns the path, which the caller frees; NULL = this failed, too.
 */
static char *write_elsewhere(const struct result *r, const char *name)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (!place(i))
			continue;
		_cleanup_free_ char *directory =
			xasprintf("%s/%s", place(i), name ? name : "ptmem-XXXXXX");
		if (!make_directory(directory, name))
			continue;
		char *path = xasprintf("%s/%s", directory, r->name);
		if (result_write(r, path) == 0)
			return path;
		free(path);
		rmdir(directory);
	}
	return NULL;
}

int fallback_write(const struct result *r, const char *path)
{
	return fallback_write_in(r, path, NULL, false);
}

int fallback_write_in(const struct result *r, const char *path, const char *directory,
		    bool is_quiet)
{
	bool is_taken = directory && file_name_is_shared(path);
	int rc = is_taken ? -EEXIST : result_write(r, path);

	if (rc == 0)
		return 0;
	_cleanup_free_ char *elsewhere = write_elsewhere(r, directory);
	const char *name = strcmp(path, "-") == 0 ? "standard output" : path;

	if (elsewhere && is_quiet)
		log_verbose("cannot write %s: %s; the %s is in %s", name, strerror(-rc), r->what,
			    elsewhere);
	else if (elsewhere)
		log_error("cannot write %s: %s; the %s is in %s", name, strerror(-rc), r->what,
			  elsewhere);
	else
		log_error("cannot write %s: %s; the %s cannot be written elsewhere either", name,
			  strerror(-rc), r->what);
	return rc;
}

char *fallback_directory_name(void)
{
	uint64_t random = 0;

	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	return xasprintf("ptmem-%d-%08llx", (int)getpid(),
			 (unsigned long long)random & 0xffffffff);
}

char *fallback_find(const char *directory, const char *name)
{
	for (size_t i = 0; i < PLACES; i++) {
		if (!place(i))
			continue;
		_cleanup_free_ char *there = xasprintf("%s/%s", place(i), directory);
		char *path = xasprintf("%s/%s", there, name);

		if (is_own_directory(there) && access(path, F_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

void fallback_remove(const char *path)
{
	_cleanup_free_ char *directory = xstrndup(path, (size_t)(strrchr(path, '/') - path));

	unlink(path);
	rmdir(directory); /* fails unless it is empty */
}
