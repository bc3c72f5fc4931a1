/*
 * open returns the lowest free number, so each closed descriptor gets its own number if those below
 * it are open. See standard_files.h.
 */
#include "base/standard_files.h"

#include <fcntl.h>
#include <unistd.h>

void standard_files_hold(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}
