/* See what_if_files.h. */
#include "report/whatif/what_if_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"

static const char *temporary_directory(void)
{
	const char *path = getenv("TMPDIR");

	return path && *path ? path : "/tmp";
}

/* A file without a name, on file systems that have them: then SIGKILL leaves none behind. */
static int open_unnamed(void)
{
	int fd = open(temporary_directory(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	_cleanup_free_ char *path = NULL;

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	path = xasprintf("%s/ptmem-what-if.XXXXXX", temporary_directory());
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

FILE *temporary_open(void)
{
	int fd = open_unnamed();
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");

	if (fd >= 0 && !f)
		close(fd);
	return f;
}

int temporary_describe(int err, char **why_out)
{
	*why_out = xasprintf("--what-if needs a temporary file with 32 bytes for each call, which "
			     "cannot be written in %s: %s; TMPDIR=DIRECTORY is another place",
			     temporary_directory(), strerror(-err));
	return -EINVAL;
}

static int copy(FILE *in, FILE *out, char **why_out)
{
	_cleanup_free_ char *buffer = xmalloc(1 << 16);
	size_t n;

	while ((n = fread(buffer, 1, 1 << 16, in)) > 0)
		if (fwrite(buffer, 1, n, out) != n)
			return temporary_describe(-errno, why_out);
	if (ferror(in))
		return -errno;
	return fseeko(out, 0, SEEK_SET) == 0 ? 0 : temporary_describe(-errno, why_out);
}

/* Closes @in. */
static int copy_pipe(FILE *in, FILE **out, char **why_out)
{
	FILE *copied = temporary_open();
	int err = copied ? copy(in, copied, why_out) : temporary_describe(-errno, why_out);

	fclose(in);
	if (!err)
		*out = copied;
	else if (copied)
		fclose(copied);
	return err;
}

/* Only files of events have each call. */
static int check_start(FILE *f, char **why_out)
{
	char start[32] = "";
	const char *why = "it is not a file of ptmem --events=FILE, whose calls --what-if repeats";

	errno = 0;
	start[fread(start, 1, sizeof(start) - 1, f)] = '\0';
	if (ferror(f))
		return errno ? -errno : -EIO;
	rewind(f);
	if (text_begins_with(start, "ptmem-events "))
		return 0;
	if (!*start)
		why = "the file is empty";
	else if (text_begins_with(start, "ptmem-recording "))
		why = "a recording has sums, not each call, which --what-if repeats: record these "
		      "with ptmem --events=FILE, and give it FILE";
	else if (text_begins_with(start, "\x1f\x8b"))
		why = "it is compressed: gunzip -c FILE | ptmem-report --what-if=ALLOCATORS -";
	*why_out = xstrdup(why);
	return -EINVAL;
}

int events_file_open(const char *path, FILE **out, char **why_out)
{
	FILE *f = strcmp(path, "-") == 0 ? fdopen(dup(STDIN_FILENO), "r") : fopen(path, "re");

	if (!f)
		return -errno;
	int err = fseeko(f, 0, SEEK_SET) == 0 ? 0 : copy_pipe(f, &f, why_out);

	if (err)
		return err;
	err = check_start(f, why_out);
	if (err)
		fclose(f);
	else
		*out = f;
	return err;
}
