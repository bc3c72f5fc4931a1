/* Attaches without installing anything, reads while all threads are stopped, and detaches. */
#include "session/inspect_process.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"
#include "session/exec_info.h"
#include "session/inspect_look.h"
#include "session/inspect_output.h"
#include "session/inspect_title.h"
#include "session/run.h"
#include "tracee/control/attach.h"
#include "tracee/state/space.h"
#include "tracee/state/target_options.h"

struct look {
	struct registry *registry;
	struct target *target;
	struct inspect_look result;
	bool wants_blocks, wants_holders;
	struct inspect_objects objects;
	struct memory_copy copy;
	uint64_t copied_most;
	struct inspect_blocks blocks;
	int rc;
	uint64_t stopped_ns;            /* in all looks */
};

static void read_objects(void *ctx, struct address_space *s)
{
	struct look *l = ctx;

	inspect_objects_read(s, &l->objects);
}

static void look_at(void *ctx, struct address_space *s)
{
	struct look *l = ctx;

	const struct inspect_wish wish = {.block = l->wants_blocks ? inspect_blocks_add : NULL,
					  .python_block = l->wants_blocks ?
						  inspect_blocks_add_python : NULL,
					  .ctx = &l->blocks, .wants_types = true,
					  .wants_holders = l->wants_holders,
					  .objects = &l->objects, .copy = &l->copy};

	l->rc = inspect_look(l->target, s, &wish, &l->result);
}

static int read_process(struct look *l, pid_t pid, enum attach_problem *problem_out,
			long *detail_out)
{
	const struct target_options options = {.only_reads = true, .probes = {.none = true}};
	const struct event_sink sink = {
		.ctx = l, .before_stop = read_objects, .space_new = look_at};

	l->rc = 0;
	inspect_look_copy_init(&l->copy, proc_find_reader(pid), l->copied_most);
	l->target = target_new(&options, &sink, l->registry);
	int rc = target_attach(l->target, pid, problem_out, detail_out);

	if (rc == 0) {
		l->stopped_ns += target_stats(l->target)->attach_ns;
		target_detach(l->target);
	}
	target_free(l->target);
	if (rc == 0 && l->rc == 0)
		inspect_look_classify(&l->result);
	memory_copy_deinit(&l->copy);
	inspect_objects_deinit(&l->objects);
	return rc != 0 ? rc : l->rc;
}

static void forget(struct look *l)
{
	inspect_look_deinit(&l->result);
	l->blocks.list.count = 0;
}

static int report(struct run *run, pid_t pid, struct look *l)
{
	_cleanup_free_ char *why = inspect_title_refusal((uint32_t)pid, &l->result);
	_cleanup_free_ char *command = exec_info_command(proc_find_reader(pid), false);
	struct inspect_title title;

	if (why) {
		log_error("%s", why);
		return -ENOTSUP;
	}
	inspect_title_init(&title, (uint32_t)pid, command ? command : "", &l->result);
	title.stopped_ns = l->stopped_ns;
	return inspect_output_write(run, &title, &l->result, &l->blocks);
}

int inspect_process(struct run *run, pid_t pid, enum attach_problem *problem_out,
		    long *detail_out)
{
	struct look l = {.registry = &run->registry,
			 .wants_blocks = inspect_output_wants_blocks(run),
			 .wants_holders = run->options->inspect.pointers,
			 .copied_most = run->options->inspect.copy};
	int rc = read_process(&l, pid, problem_out, detail_out);

	for (uint32_t i = 1; rc == 0 && i < PYTHON_LOOKS; i++) {
		if (!python_report_is_torn(&l.result.report.python))
			break;
		forget(&l);
		rc = read_process(&l, pid, problem_out, detail_out);
	}
	if (rc == 0) {
		rc = report(run, pid, &l);
		inspect_look_deinit(&l.result);
	} else if (*problem_out == ATTACH_OK) {
		log_error("process %d: its memory cannot be read: %s", (int)pid, strerror(-rc));
	}
	vec_deinit(&l.blocks.list);
	return rc;
}
