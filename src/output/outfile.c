/*
 * A file that is whole or absent: written as .ptmem.PID.N in the folder where it
 * is to stand, then renamed over the name that was asked for.
 *
 *	path                          written to
 *	"-"                           standard output, directly
 *	FIFO, device, socket          the path itself, directly
 *	symbolic link to a file       beside the link's end, which it replaces
 *	dangling symbolic link        where it points to, directly
 *	file, or nothing there yet    temporary file, renamed at the commit
 *
 * A file that is there must be writable, as if it were truncated, and hands its
 * mode on to the new one. Knows nothing of formats.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/stream.h"
#include "output/writer.h"

#define FILE_MODE 0644
#define TEMPORARY_TRIES 10000

static int open_stream(int fd, FILE **file_out)
{
	FILE *file = stream_new(fd, true);

	if (!file) {
		int err = -errno;

		close(fd);
		return err;
	}
	*file_out = file;
	return 0;
}

static int open_direct(const char *path, struct outfile *out)
{
	int fd = stream_open(path, O_WRONLY | O_CREAT | O_TRUNC, FILE_MODE);
	FILE *file = NULL;

	if (fd < 0)
		return fd;
	int err = open_stream(fd, &file);

	if (!err)
		*out = (struct outfile){.file = file, .path = xstrdup(path)};
	return err;
}

static char *temporary_name(const char *path, unsigned number)
{
	const char *slash = strrchr(path, '/');
	int dir_size = slash ? (int)(slash + 1 - path) : 0;

	return xasprintf("%.*s.ptmem.%d.%u", dir_size, path, (int)getpid(), number);
}

/* Makes a file beside @path under a name that nothing has yet. */
static int create_temporary(const char *path, int *fd_out, char **name_out)
{
	for (unsigned i = 0; i < TEMPORARY_TRIES; i++) {
		_cleanup_free_ char *name = temporary_name(path, i);
		int fd = stream_open(name, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);

		if (fd >= 0) {
			*fd_out = fd;
			*name_out = name;
			name = NULL;
			return 0;
		}
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

/* @st: the file that is to be replaced; NULL = none. */
static int open_temporary(const char *path, const struct stat *st, struct outfile *out)
{
	_cleanup_free_ char *temporary = NULL;
	FILE *file = NULL;
	int fd = -1;

	if (st && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		return -errno;
	int err = create_temporary(path, &fd, &temporary);

	if (err)
		return err;
	if (st)
		(void)!fchmod(fd,
			      st->st_mode &
				      07777); /* a file system without modes is none the worse */
	err = open_stream(fd, &file);
	if (err) {
		unlink(temporary);
		return err;
	}
	*out = (struct outfile){.file = file, .path = xstrdup(path), .temporary = temporary};
	temporary = NULL;
	return 0;
}

/* After what stdio has printed there already. */
static int open_stdout(struct outfile *out)
{
	fflush(stdout);
	FILE *file = stream_new(STDOUT_FILENO, false);

	if (!file)
		return -errno;
	*out = (struct outfile){.file = file, .path = xstrdup("-")};
	return 0;
}

int outfile_open(const char *path, struct outfile *out)
{
	struct stat st, link;

	if (!strcmp(path, "-"))
		return open_stdout(out);
	if (stat(path, &st)) {
		if (errno != ENOENT || !*path)
			return -errno;
		if (path[strlen(path) - 1] == '/')
			return -EISDIR;
		return lstat(path, &link) ? open_temporary(path, NULL, out) :
					    open_direct(path, out);
	}
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode))
		return open_direct(path, out);
	_cleanup_free_ char *end = realpath(path, NULL);

	return end ? open_temporary(end, &st, out) : -errno;
}

/* Closes the stream. 0 or -errno of anything that was not written. */
static int close_stream(struct outfile *out)
{
	bool had_error = ferror(out->file);
	int err = fflush(out->file) ? -errno : had_error ? -EIO : 0;

	if (fclose(out->file) && !err)
		err = -errno;
	return err;
}

static void release(struct outfile *out)
{
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
}

int outfile_commit(struct outfile *out)
{
	int err = close_stream(out);

	if (out->temporary) {
		if (!err && rename(out->temporary, out->path))
			err = -errno;
		if (err)
			unlink(out->temporary);
	}
	release(out);
	return err;
}

void outfile_abort(struct outfile *out)
{
	if (!out->file)
		return;
	fclose(out->file);
	if (out->temporary)
		unlink(out->temporary);
	release(out);
}
