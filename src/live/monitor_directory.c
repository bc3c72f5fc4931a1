/*
 * Removes the sockets of ptmems that were killed. A file in the directory is removed if
 *
 *	its name is PID.sock or PID.new,
 *	it is a socket of our own, and
 *	no process has it open: a connect() with another socket type then fails with
 *	ECONNREFUSED, otherwise with EPROTOTYPE, unnoticed by its owner.
 *
 * So reused process ids, and those of other pid namespaces, do not matter. bind() creates PID.new a
 * moment before connect() works, so such a file must also be old. A ptmem may get the process id of
 * a dead one: it replaces PID.sock with the directory locked.
 */
#include "live/monitor_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define LOCK_TRIES 100
/* short: a ptmem that was stopped while holding the lock must not block all others */
#define LOCK_PAUSE_NS 10000000l
#define NEW_AGE_S 60

char *monitor_directory(uid_t uid, unsigned i)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	if (!runtime || *runtime != '/')
		i++;
	if (i == 0)
		return xasprintf("%s/ptmem", runtime);
	return i == 1 ? xasprintf("/tmp/ptmem-%u", (unsigned)uid) : NULL;
}

int monitor_directory_make(const char *path)
{
	struct stat st;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return -errno;
	if (lstat(path, &st) != 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) ? 0 : -EPERM;
}

/* -- sockets without an owner -- */

/* Whether @name is a number followed by @end. */
static bool is_number_and(const char *name, const char *end)
{
	size_t digits = strspn(name, "0123456789");

	return digits > 0 && strcmp(name + digits, end) == 0;
}

static bool has_owner(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
		return true;
	strcpy(addr.sun_path, path);
	return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno != ECONNREFUSED;
}

static bool is_left_over(const char *path, const char *name)
{
	struct stat st;
	bool is_new = is_number_and(name, ".new");

	if (!is_new && !is_number_and(name, ".sock"))
		return false;
	if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != geteuid())
		return false;
	return (!is_new || st.st_mtime + NEW_AGE_S < time(NULL)) && !has_owner(path);
}

void monitor_directory_sweep(const char *directory)
{
	DIR *dir = opendir(directory);

	for (const struct dirent *e; dir && (e = readdir(dir));) {
		_cleanup_free_ char *path = xasprintf("%s/%s", directory, e->d_name);
		if (is_left_over(path, e->d_name))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}

int monitor_directory_lock(const char *directory)
{
	const struct timespec pause = {0, LOCK_PAUSE_NS};
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return fd;
		nanosleep(&pause, NULL);
	}
	if (fd >= 0)
		close(fd);
	return -EAGAIN;
}
