/* Resource limits of ptmem itself. */
#include "tracee/os/limit.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/types.h"

#define RESERVE 16  /* results, files below /proc, libraries whose symbols are read */

void limit_raise(int which, struct rlimit *old_out)
{
	struct rlimit limit = {0, 0};
	if (getrlimit(which, &limit) != 0)
		limit = (struct rlimit){0, 0};
	if (old_out)
		*old_out = limit;
	const struct rlimit raised = {limit.rlim_max, limit.rlim_max};
	if (limit.rlim_max > limit.rlim_cur)
		setrlimit(which, &raised);
}

int limit_keep(int fd)
{
	struct rlimit limit;
	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd < limit.rlim_cur - MIN(limit.rlim_cur / 4, (rlim_t)RESERVE))
		return fd;
	close(fd);
	errno = EMFILE;
	return -1;
}
