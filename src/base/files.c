/*
 * Files of ptmem itself: descriptors in place of standard ones that are closed, streams that repeat
 * calls that a signal interrupted, and files identified by device and inode. See files.h.
 */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/globals.h"

/*
 * open returns the lowest free number, so each closed descriptor gets its own number if those below
 * it are open. See files.h.
 */

void standard_files_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

struct stream {
	int fd;
	bool owns_fd;
};

/* -- symbolic links of other users -- */

#define LINKS_MAX 40 /* as the kernel's */

/*
 * The rule of fs.protected_symlinks: in a directory where everyone may create, and only owners
 * remove, a link is followed if it is the user's or that of the directory's owner. @directory: ""
 * is the current one.
 */
static bool may_follow(const char *directory, const struct stat *link)
{
	struct stat st;

	if (stat(*directory ? directory : ".", &st) != 0)
		return true; /* opening the file fails */
	return (st.st_mode & (S_ISVTX | S_IWOTH)) != (S_ISVTX | S_IWOTH) ||
	       link->st_uid == geteuid() || link->st_uid == st.st_uid;
}

/* @path: up to a link, which is followed by @rest. The caller frees the result. */
static char *follow_link(const char *path, size_t directory, const char *rest)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n <= 0)
		return NULL;
	target[n] = '\0';
	return xasprintf("%.*s%s%s", *target == '/' ? 0 : (int)directory, path, target, rest);
}

int path_check_links(const char *path, unsigned *links_out)
{
	_cleanup_free_ char *text = xstrdup(path);
	unsigned links = 0;

	for (size_t at = 0; text[at] && links < LINKS_MAX;) {
		size_t start = at + strspn(text + at, "/");
		size_t end = start + strcspn(text + start, "/");
		_cleanup_free_ char *part = xstrndup(text, end);
		_cleanup_free_ char *directory = xstrndup(text, start);
		struct stat st;

		at = end;
		if (lstat(part, &st) != 0)
			break; /* opening the file fails, or creates it */
		if (!S_ISLNK(st.st_mode))
			continue;
		if (!may_follow(directory, &st))
			return -EACCES;
		char *next = follow_link(part, start, text + end);

		if (!next)
			break;
		free(text);
		text = next;
		at = 0;
		links++;
	}
	*links_out = links;
	return 0;
}

/* Without links on the path none is followed that another user puts there meanwhile. */
static int open_without_links(const char *path, int flags, mode_t mode)
{
	bool creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
	struct open_how how = {.flags = (uint64_t)(unsigned)flags, .mode = creates ? mode : 0,
			       .resolve = RESOLVE_NO_SYMLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	/* an old kernel, or a filter of system calls */
	bool is_missing = fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL);

	return is_missing ? open(path, flags | O_NOFOLLOW, mode) : fd;
}

int stream_open(const char *path, int flags, mode_t mode)
{
	sig_atomic_t before = globals.signals.leave_count;
	unsigned links = 0;
	int fd, rc = path_check_links(path, &links);

	if (rc != 0)
		return rc;
	flags |= O_CLOEXEC | O_NOCTTY;
	do {
		fd = links ? open(path, flags, mode) : open_without_links(path, flags, mode);
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

ssize_t stream_read_line(FILE *file, char **line, size_t *capacity, size_t *left)
{
	size_t size = 0;
	int c = 0;

	while (c != '\n' && *left && (c = getc_unlocked(file)) != EOF) {
		if (size + 2 > *capacity) {
			*capacity = *capacity ? 2 * *capacity : 128;
			*line = xrealloc(*line, *capacity, 1);
		}
		(*line)[size++] = (char)c;
		--*left;
	}
	if (size)
		(*line)[size] = '\0';
	return size ? (ssize_t)size : -1;
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

/* -- programs -- */

char *program_find(const char *name)
{
	const char *paths = getenv("PATH");
	struct stat st;

	for (const char *p = paths ? paths : "/bin:/usr/bin"; *p;) {
		size_t n = strcspn(p, ":");
		char *path = xasprintf("%.*s/%s", n ? (int)n : 1, n ? p : ".", name);

		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return path;
		free(path);
		p += n + (p[n] == ':');
	}
	return NULL;
}

char *program_beside(const char *name)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[MAX(n, 0)] = '\0';
	char *slash = strrchr(self, '/');
	char *path = slash ? xasprintf("%.*s/%s", (int)(slash - self), self, name) : NULL;

	if (path && access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}
