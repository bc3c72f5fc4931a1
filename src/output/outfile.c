/*
 * Placeholders in the names of output files; the grammar is in outfile.h. One pass that appends to
 * a memory stream. Does not access files.
 */
#include "output/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/files.h"
#include "base/log.h"

struct expansion {
	FILE *text;
	uint32_t pid, sequence, part;
	char *why; /* NULL: no error */
};

/* @at: after "%q". Returns the text after the placeholder; NULL and an error if it is malformed. */
static const char *expand_variable(struct expansion *e, const char *at)
{
	if (*at != '{') {
		e->why = xstrdup("Expected '{' after '%q'");
		return NULL;
	}
	const char *end = strchr(++at, '}');

	if (!end) {
		e->why = xstrdup("Missing '}' in %q specifier");
		return NULL;
	}
	_cleanup_free_ char *name = xstrndup(at, (size_t)(end - at));
	const char *value = getenv(name);

	if (!value) {
		e->why = xasprintf("Environment variable '%s' is not set", name);
		return NULL;
	}
	fputs(value, e->text);
	return end + 1;
}

/* @at: after the percent sign. Returns like expand_variable. */
static const char *expand_placeholder(struct expansion *e, const char *at)
{
	switch (*at) {
	case '%':
		fputc('%', e->text);
		return at + 1;
	case 'p':
		fprintf(e->text, "%" PRIu32, e->pid);
		return at + 1;
	case 'n':
		if (e->part)
			fprintf(e->text, "%03" PRIu32, e->part);
		else
			fprintf(e->text, "%" PRIu32, ++e->sequence);
		return at + 1;
	case 'q':
		return expand_variable(e, at + 1);
	default:
		/* Valgrind also accepts %n, but does not mention it. */
		e->why = xstrdup("Expected 'p' or 'n' or 'q' or '%' after '%'");
		return NULL;
	}
}

static void expand(struct expansion *e, const char *at)
{
	while (at && *at) {
		size_t plain = strcspn(at, "%");

		fwrite(at, 1, plain, e->text);
		at += plain;
		if (*at)
			at = expand_placeholder(e, at + 1);
	}
}

/* The error in the pattern as a whole, or NULL. */
static const char *find_fault(const char *pattern)
{
	if (!*pattern)
		return "No filename given";
	if (*pattern == '~')
		return "Filename begins with '~'\n"
		       "You probably expected the shell to expand the '~', but it\n"
		       "didn't.  The rules for '~'-expansion vary from shell to shell.\n"
		       "You might have more luck using $HOME instead.";
	return NULL;
}

static char *join(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	return xasprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

int pattern_expand(const char *pattern, const struct pattern_values *values, char **path_out,
		   char **why_out)
{
	struct expansion e = {
		.pid = values->pid, .sequence = *values->sequence, .part = values->part};
	_cleanup_free_ char *name = NULL;
	const char *fault = find_fault(pattern);
	size_t size;

	if (fault) {
		*why_out = xstrdup(fault);
		return -EINVAL;
	}
	e.text = open_memstream(&name, &size);
	if (!e.text)
		return -errno;
	expand(&e, pattern);
	if (fclose(e.text))
		return -errno;
	if (!e.why && !*name)
		e.why = xstrdup("No filename given"); /* %q{VAR} of an empty variable */
	if (e.why) {
		*why_out = e.why;
		return -EINVAL;
	}
	*values->sequence = e.sequence;
	*path_out = *name == '/' || !values->dir || !strcmp(pattern, "-") ? xstrdup(name)
									  : join(values->dir, name);
	return 0;
}

/*
 * Creates files atomically: the data go to an unnamed file (O_TMPFILE) in the same directory. When
 * it is complete, it is linked as .ptmem.PID.N and then renamed to the path. The kernel removes an
 * unnamed file when its writer dies. On a file system without O_TMPFILE the file has that name from
 * the start, and keeps it if ptmem dies.
 *
 *	path                          written to
 *	"-"                           standard output, directly
 *	FIFO, device, socket          the path itself, directly
 *	symbolic link to a file       next to the link's target, which it replaces
 *	dangling symbolic link        where it points to, directly
 *	file, or nothing there yet    temporary file, renamed at the commit
 *
 * An existing file must be writable, as if it were truncated, and the new one gets its mode.
 * Independent of formats.
 */

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
		*out = (struct outfile){.file = file, .path = xstrdup(path), .unnamed_fd = -1};
	return err;
}

/* The directory of @path, with its slash; "" = the working directory. */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return xasprintf("%.*s", slash ? (int)(slash + 1 - path) : 0, path);
}

static void link_path(int fd, char path[static 32])
{
	snprintf(path, 32, "/proc/self/fd/%d", fd);
}

/*
 * Opens an unnamed file in @directory. -EOPNOTSUPP: not supported, or it could not be named
 * later.
 */
static int create_unnamed(const char *directory, int *fd_out)
{
	char link[32];
	int fd = stream_open(*directory ? directory : ".", O_WRONLY | O_TMPFILE, FILE_MODE);

	if (fd == -EISDIR || fd == -EINVAL || fd == -ENOSYS)
		return -EOPNOTSUPP; /* the file system or the kernel has none */
	if (fd < 0)
		return fd;
	link_path(fd, link);
	if (access(link, F_OK)) { /* no /proc here */
		close(fd);
		return -EOPNOTSUPP;
	}
	*fd_out = fd;
	return 0;
}

static int create_named(const char *name, int *fd_out)
{
	int fd = stream_open(name, O_WRONLY | O_CREAT | O_EXCL, FILE_MODE);

	if (fd >= 0)
		*fd_out = fd;
	return MIN(fd, 0);
}

static int link_unnamed(const char *name, int *fd)
{
	char link[32];

	link_path(*fd, link);
	return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Creates *@fd with @make under a unique name next to @path: *@name_out. */
static int take_name(const char *path, int (*make)(const char *name, int *fd), int *fd,
		     char **name_out)
{
	_cleanup_free_ char *directory = directory_of(path);
	int err = -EEXIST;

	for (unsigned i = 0; err == -EEXIST && i < TEMPORARY_TRIES; i++) {
		_cleanup_free_ char *name =
			xasprintf("%s.ptmem.%d.%u", directory, (int)getpid(), i);

		err = make(name, fd);
		if (!err)
			*name_out = xstrdup(name);
	}
	return err;
}

/* *@name_out: NULL if the file has no name yet. */
static int create_temporary(const char *path, int *fd_out, char **name_out)
{
	_cleanup_free_ char *directory = directory_of(path);
	int err = create_unnamed(directory, fd_out);

	*name_out = NULL;
	return err == -EOPNOTSUPP ? take_name(path, create_named, fd_out, name_out) : err;
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
				      07777); /* some file systems have no modes */
	err = open_stream(fd, &file);
	if (err) {
		if (temporary)
			unlink(temporary);
		return err;
	}
	*out = (struct outfile){.file = file, .path = xstrdup(path), .temporary = temporary,
				.unnamed_fd = temporary ? -1 : fd};
	temporary = NULL;
	return 0;
}

/* Written after everything that stdio has printed there. */
static int open_stdout(struct outfile *out)
{
	fflush(stdout);
	FILE *file = stream_new(STDOUT_FILENO, false);

	if (!file)
		return -errno;
	*out = (struct outfile){.file = file, .path = xstrdup("-"), .unnamed_fd = -1};
	return 0;
}

int outfile_open(const char *path, struct outfile *out)
{
	struct stat st, link;
	unsigned links = 0;

	if (!strcmp(path, "-"))
		return open_stdout(out);
	int rc = path_check_links(path, &links);

	if (rc != 0)
		return rc;
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
	_cleanup_free_ char *end = links ? realpath(path, NULL) : xstrdup(path);

	return end ? open_temporary(end, &st, out) : -errno;
}

static void release(struct outfile *out)
{
	free(out->path);
	free(out->temporary);
	*out = (struct outfile){0};
}

int outfile_commit(struct outfile *out)
{
	bool had_error = ferror(out->file);
	int err = fflush(out->file) ? -errno : had_error ? -EIO : 0;
	sigset_t all, before;

	/* no signal may arrive between link and rename */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (!err && out->unnamed_fd >= 0)
		err = take_name(out->path, link_unnamed, &out->unnamed_fd, &out->temporary);
	if (fclose(out->file) && !err)
		err = -errno;
	if (!err && out->temporary && rename(out->temporary, out->path))
		err = -errno;
	if (err && out->temporary)
		unlink(out->temporary);
	sigprocmask(SIG_SETMASK, &before, NULL);
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

int outfile_put(const char *path, int (*put)(FILE *file, const void *ctx), const void *ctx)
{
	struct outfile out;
	int err = outfile_open(path, &out);

	if (err)
		return err;
	err = put ? put(out.file, ctx) : 0;
	if (put && !err)
		return outfile_commit(&out);
	outfile_abort(&out);
	return err;
}

void outfile_log_error(const char *path, int err)
{
	unsigned links;

	if (path_check_links(path, &links) != 0)
		log_error("cannot write %s: it is, or leads through, a symbolic link that another "
			  "user has put into a directory where all may create files", path);
	else
		log_error("cannot write %s: %s", path, strerror(-err));
}
