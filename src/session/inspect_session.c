/*
 * The comparison is exact if the process was profiled from its start, and no thread is within
 * malloc: each block is either on both sides or on none.
 */
#include "session/inspect_session.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "output/inspect_blocks.h"
#include "output/inspect_report.h"
#include "output/inspect_text.h"
#include "output/writer.h"
#include "session/inspect_look.h"
#include "session/inspect_title.h"
#include "session/path_pins.h"
#include "session/session.h"
#include "tracee/state/space.h"

#define SHOWN 20u
#define PAUSE_NS 1000000 /* between two looks, for the program to go on */

struct question {
	struct session *session;
	struct inspect_look look;
	struct inspect_blocks *found;   /* NULL = not needed */
	struct inspect_blocks *counted;
	struct path_pins pins;
	struct memory_copy copy;
	uint64_t time_ms;               /* when it was read, since the profile began */
	int rc;
};

/* -- both -- */

static int add_counted(void *ctx, const struct block *b)
{
	inspect_blocks_add(ctx, b->addr, b->size, 0);
	return 0;
}

static void look(void *ctx, struct address_space *space)
{
	struct question *q = ctx;
	struct inspect_wish wish = {.block = q->found ? inspect_blocks_add : NULL,
					  .ctx = q->found, .wants_types = !q->counted,
					  .copy = &q->copy,
					  .wants_holders =
						  !q->counted &&
						  q->session->run->options->inspect.pointers};

	if (space->sink.user != q->session)
		return;
	q->time_ms = (clock_now_ns() - q->session->process.start_ns) / 1000000;
	if (!q->counted) {
		path_pins_init(&q->pins, q->session);
		wish.paths = q->pins.paths.pages ? &q->pins.paths : NULL;
		wish.python_block = q->found ? inspect_blocks_add_python : NULL;
	}
	q->rc = inspect_look(q->session->run->target, space, &wish, &q->look);
	if (q->rc != 0 || !q->counted)
		return;
	profile_each_block(q->session->heap.profile, add_counted, q->counted);
	profile_each_ignored(q->session->heap.profile, add_counted, q->counted);
}

static void forget(struct question *q)
{
	inspect_look_deinit(&q->look);
	path_pins_deinit(&q->pins);
	if (q->found)
		q->found->list.count = 0;
	if (q->counted)
		q->counted->list.count = 0;
}

static void read_once(struct question *q, uint64_t *stopped_out)
{
	const struct session *s = q->session;

	q->rc = -ESRCH;
	inspect_look_copy_init(&q->copy, s->space->processes.reader, s->run->options->inspect.copy);
	*stopped_out += target_inspect(s->run->target, look, q);
	if (q->rc == 0)
		inspect_look_classify(&q->look);
	memory_copy_deinit(&q->copy);
}

/* Reads and classifies, again if Python's allocator was being changed. */
static int read_whole(struct question *q, uint64_t *stopped_out)
{
	*stopped_out = 0;
	for (uint32_t i = 1;; i++) {
		read_once(q, stopped_out);
		if (q->rc != 0)
			return q->rc;
		if (i == PYTHON_LOOKS || !python_report_is_torn(&q->look.report.python))
			return 0;
		forget(q);
		nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
	}
}

static int ask(struct question *q, uint64_t *stopped_out, FILE *file)
{
	uint32_t pid = q->session->process.pid;

	if (!q->session->run->target)
		return -ESRCH;
	int rc = read_whole(q, stopped_out);

	if (rc != 0) {
		fprintf(file, "process %u cannot be read: %s\n", pid, strerror(-rc));
		return -ESRCH;
	}
	char *why = inspect_title_refusal(pid, &q->look);

	if (!why)
		return 0;
	fprintf(file, "%s\n", why);
	free(why);
	inspect_look_deinit(&q->look);
	return -ENOTSUP;
}

int inspect_session_write(struct session *s, const char *path, FILE *file)
{
	struct inspect_blocks blocks = {0};
	struct question q = {.session = s};
	struct inspect_title title;
	uint64_t stopped_ns;
	int rc;

	if (path && inspect_title_wants_blocks(path))
		q.found = &blocks;
	rc = ask(&q, &stopped_ns, file);
	if (rc != 0) {
		vec_deinit(&blocks.list);
		path_pins_deinit(&q.pins);
		return rc;
	}
	inspect_title_init(&title, s->process.pid, s->process.command, &q.look);
	title.stopped_ns = stopped_ns;
	inspect_kept_set(s, &title, &q.look.report, &q.pins, q.time_ms);
	path_pins_name(&q.pins, s);
	title.pin = q.pins.list.data;
	title.pin_count = q.pins.list.count;
	if (path)
		rc = inspect_title_write(
			&(struct inspect_found){path, &title, &q.look.report, &blocks});
	else
		inspect_report_print(file, &title, &q.look.report);
	vec_deinit(&blocks.list);
	path_pins_deinit(&q.pins);
	inspect_look_deinit(&q.look);
	return rc;
}

/* -- the comparison -- */

/*
 * The usable size for the request @b, or up to 32 bytes more if the rest would be too small for a
 * chunk (16 except for aligned blocks); for a block mapped separately, up to the end of its last
 * page. pvalloc asks for whole pages.
 */
static bool fits(const struct inspect_block *b, uint64_t usable)
{
	uint64_t page = PAGE_SIZE_MIN, size = b->addr % page ? b->size : ROUND_UP(b->size, page);
	uint64_t chunk = MAX(ROUND_UP(size + 8, UINT64_C(16)), UINT64_C(32));
	/* a block with a mapping of its own ends at the page, since glibc 2.43 a word before it */
	taddr_t end = ROUND_UP(b->addr + usable, UINT64_C(16));
	bool is_to_page = end % page == 0;

	return usable >= b->size && usable <= chunk + (is_to_page ? page : 24);
}

struct differences {
	bool is_glibc, is_loose;
	uint64_t common, counted, found, sizes;
	FILE *file;
};

static void show(struct differences *d, uint64_t *count, const char *what,
		 const struct inspect_block *b)
{
	if (++*count <= SHOWN)
		fprintf(d->file, "%s: %#llx, %llu bytes\n", what, (unsigned long long)b->addr,
			(unsigned long long)b->size);
}

/*
 * Whether @c is what @f is in the heap: it begins there, or, if that is not recorded, at the first
 * address in it that has some alignment.
 */
static bool is_same(const struct differences *d, const struct inspect_block *c,
		    const struct inspect_block *f)
{
	uint64_t offset = c->addr - f->addr;

	return c->addr == f->addr ||
	       (d->is_loose && offset < f->size && offset < (c->addr & -c->addr));
}

static void compare(const struct inspect_blocks *counted, const struct inspect_blocks *found,
		    struct differences *d)
{
	size_t i = 0, k = 0;

	while (i < counted->list.count || k < found->list.count) {
		const struct inspect_block *c = &counted->list.data[i], *f = &found->list.data[k];

		if (k == found->list.count || (i < counted->list.count && c->addr < f->addr)) {
			show(d, &d->counted, "only counted", c);
			i++;
		} else if (i == counted->list.count || !is_same(d, c, f)) {
			show(d, &d->found, "only in the heap", f);
			k++;
		} else {
			uint64_t usable = f->size - (c->addr - f->addr);

			d->common++;
			if (d->is_glibc ? !fits(c, usable) : usable < c->size)
				show(d, &d->sizes, "of another size", f);
			i++;
			k++;
		}
	}
}

int inspect_session_check(struct session *s, FILE *file)
{
	struct inspect_blocks found = {0}, counted = {0};
	struct question q = {.session = s, .found = &found, .counted = &counted};
	struct differences d = {.file = file};
	uint64_t stopped_ns;
	int rc = ask(&q, &stopped_ns, file);

	if (rc == 0) {
		d.is_glibc = !q.look.report.other.name;
		d.is_loose = q.look.report.other.sums.loose_blocks > 0;
		inspect_blocks_sort(&found);
		inspect_blocks_sort(&counted);
		compare(&counted, &found, &d);
		fprintf(file, "common %llu, only counted %llu, only in the heap %llu, of another "
			      "size %llu; threads in malloc %u after %u moments; consistent %d\n",
			(unsigned long long)d.common, (unsigned long long)d.counted,
			(unsigned long long)d.found, (unsigned long long)d.sizes, q.look.inside,
			q.look.moments, inspect_is_consistent(&q.look.report));
		inspect_look_deinit(&q.look);
	}
	vec_deinit(&found.list);
	vec_deinit(&counted.list);
	return rc;
}
