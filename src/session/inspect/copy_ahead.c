/*
 * The process is stopped for a moment to make a userfaultfd, which tells what is written from then
 * on (tracee/os/pagemap.h). The rest takes place from outside.
 */
#include "session/inspect/copy_ahead.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/proc.h"
#include "malloc/memory_copy.h"
#include "session/inspect/inspect_stopped.h"
#include "tracee/inject/watch_file.h"
#include "tracee/os/pagemap.h"

#define LEAST (UINT64_C(64) << 20)  /* less is copied as quickly as this is prepared */
#define ENOUGH (UINT64_C(2) << 20)  /* so little may be left: 1 ms */
#define ROUNDS 20u

static int make_uffd(struct inspect_visit *v, struct address_space *s)
{
	return watch_file_make(v->target, s, v->ctx);
}

/* -- copying -- */

static uint64_t bytes_of(const struct copy_ranges *r)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < r->list.count; i++)
		bytes += r->list.data[i].end - r->list.data[i].start;
	return bytes;
}

/* Until little is left, or it becomes little less. 0, -ENOMEM without room, or another -errno. */
static int copy_rounds(struct memory_copy *copy, struct written_pages *w, uint64_t *left_out)
{
	const struct memory_source from = memory_of_process(&w->pid);
	struct copy_ranges written = {0};
	uint64_t before = UINT64_MAX;
	int rc = 0;

	for (unsigned round = 0; round < ROUNDS && rc == 0; round++) {
		written.list.count = 0;
		rc = written_pages_next(w, copy_ranges_add, &written);
		*left_out = bytes_of(&written);
		if (rc == 0 && !memory_copy_ahead(copy, &written, &from))
			rc = -ENOMEM;
		if (*left_out <= ENOUGH || *left_out / 4 >= before / 5)
			break;
		before = *left_out;
	}
	vec_deinit(&written.list);
	return rc;
}

void copy_ahead(struct memory_copy *copy, struct registry *registry, pid_t pid,
		struct written_pages *written_out)
{
	pid_t reader = proc_find_reader(pid);
	uint64_t left = 0;
	int uffd = -1;
	struct inspect_visit visit = {.registry = registry, .pid = pid, .makes_calls = true,
				      .fn = make_uffd, .ctx = &uffd};

	*written_out = (struct written_pages){.uffd = -1, .pagemap = -1};
	if (copy->capacity < LEAST)
		return;
	int rc = inspect_visit_run(&visit);

	if (rc == 0)
		rc = written_pages_begin(reader, uffd, written_out);
	if (rc == 0)
		rc = copy_rounds(copy, written_out, &left);
	if (rc != 0) {
		log_verbose("process %d: its memory is copied while it is stopped: writes to it "
			    "cannot be watched: %s", (int)pid, strerror(-rc));
		memory_copy_restart(copy);
		written_pages_end(written_out);
		return;
	}
	log_verbose("process %d: its memory was copied before it is stopped, but for %" PRIu64
		    " KiB or more", (int)pid, left >> 10);
	if (left > MAX(copy->used / 16, LEAST))
		log_warn("process %d writes to its memory faster than that can be copied: it is "
			 "stopped for the last %" PRIu64 " MiB", (int)pid, left >> 20);
}
