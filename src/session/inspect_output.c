/* See inspect_output.h. */
#include "session/inspect_output.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "base/log.h"
#include "base/same_file.h"
#include "output/inspect_report.h"
#include "session/inspect_look.h"
#include "session/inspect_title.h"
#include "session/run.h"
#include "tracee/state/module.h"

bool inspect_output_wants_blocks(const struct run *run)
{
	const char *pattern = run->options->inspect.out;

	return pattern && inspect_title_wants_blocks(pattern);
}

/* The file of the program or a library that @path is, too; NULL. */
static const char *find_object(const struct held_modules *modules, const char *path)
{
	for (size_t i = 0; i < modules->list.count; i++) {
		const struct module *m = modules->list.data[i];

		if (m->file && !m->is_vdso && same_file(m->file->path, path))
			return m->path;
	}
	return NULL;
}

int inspect_output_write(struct run *run, const struct inspect_title *t,
			 const struct inspect_look *look, struct inspect_blocks *blocks)
{
	const struct file_request request = {
		.option = "--inspect-out",
		.pattern = run->options->inspect.out,
		.pid = t->pid,
		.needs_pid = options_attach_many(run->options),
	};
	_cleanup_free_ char *path = NULL;
	int rc = request.pattern ? run_file_name(run, &request, &path) : 0;

	if (rc != 0)
		return rc;
	const char *object = path ? find_object(&look->modules, path) : NULL;

	if (object) {
		log_error("--inspect-out would overwrite %s, which process %u has mapped", object,
			  t->pid);
		return -EEXIST;
	}
	return inspect_title_save(
		&(struct inspect_found){path ? path : "-", t, &look->report, blocks});
}
