/*
 * The log is opened before the program starts, and the program does not inherit
 * it. Its name may contain %p (ptmem's own process id), %q{VAR} and %%.
 */
#include "cli/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "output/pattern.h"

static int open_log(const char *pattern)
{
	_cleanup_free_ char *path = NULL, *why = NULL;
	uint32_t sequence = 0;
	struct pattern_values values = {.pid = (uint32_t)getpid(), .sequence = &sequence};
	if (pattern_expand(pattern, &values, &path, &why) != 0) {
		log_error("--log-file: %s", why);
		return -EINVAL;
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	int err = fd < 0 ? -errno : 0;
	if (err)
		log_error("cannot create log file %s: %s", path, strerror(-err));
	else
		log_set_fd(fd);
	return err;
}

int log_file_open(const struct options *o)
{
	if (o->messages.log_file)
		return open_log(o->messages.log_file);
	int fd = (int)o->messages.log_fd;
	if (fd == STDERR_FILENO)
		return 0;
	if (fcntl(fd, F_GETFD) < 0) {
		log_error("--log-fd=%d: %s", fd, strerror(errno));
		return -EBADF;
	}
	log_set_fd(fd);
	return 0;
}
