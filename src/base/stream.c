/*
 * See stream.h.
 */
#include "base/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/globals.h"

struct stream {
	int fd;
	bool owns_fd;
};

int stream_open(const char *path, int flags, mode_t mode)
{
	sig_atomic_t before = globals.signals.leave_count;
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
	} while (fd < 0 && errno == EINTR && globals.signals.leave_count == before);
	return fd < 0 ? -errno : fd;
}

/* Returns less than @size only on an error, with errno set. */
static ssize_t write_all(void *cookie, const char *bytes, size_t size)
{
	const struct stream *s = cookie;
	size_t done = 0;

	while (done < size) {
		ssize_t n = write(s->fd, bytes + done, size - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			break;
	}
	return (ssize_t)done;
}

static int close_stream(void *cookie)
{
	struct stream *s = cookie;
	int rc = s->owns_fd ? close(s->fd) : 0;

	free(s);
	return rc;
}

FILE *stream_new(int fd, bool owns_fd)
{
	const cookie_io_functions_t functions = {.write = write_all, .close = close_stream};
	struct stream *s = xmalloc(sizeof(*s));

	*s = (struct stream){fd, owns_fd};
	FILE *file = fopencookie(s, "w", functions);

	if (!file)
		free(s);
	return file;
}

/* The place after the last line end before @end; 0 = there is none. */
static off_t last_line_end(int fd, off_t end)
{
	char block[4096];

	while (end > 0) {
		off_t start = end - MIN(end, (off_t)sizeof(block));
		ssize_t n = pread(fd, block, (size_t)(end - start), start);
		const char *feed = n > 0 ? memrchr(block, '\n', (size_t)n) : NULL;

		if (feed)
			return start + (feed - block) + 1;
		end = start;
	}
	return 0;
}

off_t stream_cut_line(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	off_t end = -1;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		end = last_line_end(fd, st.st_size);
		if (end != st.st_size && ftruncate(fd, end) != 0)
			end = -1;
	}
	close(fd);
	return end;
}

FILE *stream_create(const char *path)
{
	int fd = stream_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	FILE *file = fd < 0 ? NULL : stream_new(fd, true);
	int err = fd < 0 ? -fd : errno;

	if (!file && fd >= 0)
		close(fd);
	errno = err;
	return file;
}
