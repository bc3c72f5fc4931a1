/* See inspect_output.h. */
#include "session/inspect_output.h"

#include "base/cleanup.h"
#include "output/inspect_report.h"
#include "session/inspect_title.h"
#include "session/run.h"

bool inspect_output_wants_blocks(const struct run *run)
{
	const char *pattern = run->options->inspect_out;

	return pattern && inspect_title_wants_blocks(pattern);
}

int inspect_output_write(struct run *run, const struct inspect_title *t,
			 const struct inspect_report *r, struct inspect_blocks *blocks)
{
	const struct file_request request = {
		.option = "--inspect-out",
		.pattern = run->options->inspect_out,
		.pid = t->pid,
		.needs_pid = run->options->pid_count > 1,
	};
	_cleanup_free_ char *path = NULL;
	int rc = request.pattern ? run_file_name(run, &request, &path) : 0;

	if (rc != 0)
		return rc;
	return inspect_title_save(&(struct inspect_found){path ? path : "-", t, r, blocks});
}
