/* See rescue.h. */
#include "session/rescue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "output/outfile.h"

static int write_file(const struct result *r, const char *path)
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

/*
 * Uses a new directory, so that no link of another user can interfere. Returns the path, which the
 * caller frees; NULL = this failed, too.
 */
static char *write_elsewhere(const struct result *r)
{
	const char *const below[] = {getenv("TMPDIR"), "/tmp", "/var/tmp", "/dev/shm"};

	for (size_t i = 0; i < ARRAY_SIZE(below); i++) {
		if (!below[i] || below[i][0] != '/')
			continue;
		_cleanup_free_ char *directory = xasprintf("%s/ptmem-XXXXXX", below[i]);
		if (!mkdtemp(directory))
			continue;
		char *path = xasprintf("%s/%s", directory, r->name);
		if (write_file(r, path) == 0)
			return path;
		free(path);
		rmdir(directory);
	}
	return NULL;
}

int rescue_write(const struct result *r, const char *path)
{
	int rc = write_file(r, path);

	if (rc == 0)
		return 0;
	_cleanup_free_ char *elsewhere = write_elsewhere(r);
	const char *name = strcmp(path, "-") == 0 ? "standard output" : path;

	if (elsewhere)
		log_error("cannot write %s: %s; the %s is in %s", name, strerror(-rc), r->what,
			  elsewhere);
	else
		log_error("cannot write %s: %s; the %s cannot be written elsewhere either", name,
			  strerror(-rc), r->what);
	return rc;
}
