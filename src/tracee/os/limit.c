/* Resource limits of ptmem itself. */
#include "tracee/os/limit.h"

#include <stddef.h>

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
