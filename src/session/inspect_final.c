/* The session keeps the result until the report is made. See inspect_final.h. */
#include "session/inspect_final.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "output/inspect_text.h"
#include "session/inspect_look.h"
#include "session/inspect_title.h"
#include "session/path_pins.h"
#include "session/session.h"
#include "session/session_files.h"

struct inspect_final {
	int rc;                  /* when it was read */
	uint64_t time_ms;        /* since the profile began */
	uint64_t stopped_ns;
	struct inspect_look look;
	struct memory_copy copy; /* until it is classified */
	struct inspect_blocks blocks;
	struct path_pins pins;
	/* by inspect_final_classify */
	bool is_classified;
	char *why;               /* it cannot be reported; NULL = it can; owned */
	struct inspect_title title;
};

void inspect_final_read(struct session *s, bool is_last)
{
	struct inspect_final *f = xcalloc(1, sizeof(*f));
	const char *path = s->run->options->inspect.out;
	struct inspect_wish wish = {.ctx = &f->blocks, .is_last = is_last,
				     .wants_types = true, .copy = &f->copy,
				     .wants_holders = s->run->options->inspect.pointers};
	uint64_t begin = clock_now_ns();

	inspect_look_copy_init(&f->copy, s->space->processes.reader,
			       s->run->options->inspect.copy);
	path_pins_init(&f->pins, s);
	if (f->pins.paths.pages)
		wish.paths = &f->pins.paths;
	inspect_final_free(s->end.inspected);
	s->end.inspected = f;
	if (path && inspect_title_wants_blocks(path)) {
		wish.block = inspect_blocks_add;
		wish.python_block = inspect_blocks_add_python;
	}
	f->rc = inspect_look(s->run->target, s->space, &wish, &f->look);
	f->time_ms = (begin - MIN(begin, s->process.start_ns)) / 1000000;
	f->stopped_ns = clock_now_ns() - begin;
}

static int print_to_stderr(const struct inspect_title *t, const struct inspect_report *r)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	if (!file)
		return -errno;
	inspect_report_print(file, t, r);
	if (fclose(file) != 0)
		return -errno;
	log_print_lines(LOG_RESULT, "", text);
	return 0;
}

static int write_file(struct session *s, const struct inspect_title *t)
{
	const struct session_file name = {.option = "--inspect-out",
					  .pattern = s->run->options->inspect.out};
	_cleanup_free_ char *path = NULL;
	int rc = session_files_name(s, &name, &path);

	if (rc != 0)
		return rc;
	rc = inspect_title_save(&(struct inspect_found){path, t, &s->end.inspected->look.report,
							&s->end.inspected->blocks});
	if (rc == 0)
		session_files_announce(s, path);
	return rc;
}

void inspect_final_classify(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	if (!f || f->rc != 0 || f->is_classified)
		return;
	f->is_classified = true;
	inspect_look_classify(&f->look);
	memory_copy_deinit(&f->copy);
	f->why = inspect_title_refusal(s->process.pid, &f->look);
	if (f->why)
		return;
	inspect_title_init(&f->title, s->process.pid, s->process.command, &f->look);
	f->title.stopped_ns = f->stopped_ns;
	inspect_kept_set(s, &f->title, &f->look.report, &f->pins, f->time_ms);
}

static void report(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	inspect_final_classify(s);
	if (f->why) {
		log_warn("%s", f->why);
		return;
	}
	path_pins_name(&f->pins, s);
	f->title.pin = f->pins.list.data;
	f->title.pin_count = f->pins.list.count;
	s->run->files_failed += (s->run->options->inspect.out ?
				 write_file(s, &f->title) :
				 print_to_stderr(&f->title, &f->look.report)) != 0;
}

void inspect_final_finish(struct session *s)
{
	struct inspect_final *f = s->end.inspected;

	if (!f && s->image.has_executed)
		log_warn("process %u executed another program: its memory before that is "
			 "not reported", s->process.pid);
	else if (!f)
		log_warn("process %u ended before its memory could be read: there is nothing to "
			 "inspect", s->process.pid);
	else if (f->rc != 0)
		log_warn("process %u: its memory cannot be read: %s", s->process.pid,
			 strerror(-f->rc));
	else
		report(s);
	inspect_final_free(f);
	s->end.inspected = NULL;
}

void inspect_final_free(struct inspect_final *f)
{
	if (!f)
		return;
	if (f->rc == 0)
		inspect_look_deinit(&f->look);
	memory_copy_deinit(&f->copy);
	vec_deinit(&f->blocks.list);
	path_pins_deinit(&f->pins);
	free(f->why);
	free(f);
}
