/*
 * The process is stopped for a moment to make a userfaultfd, which tells what is written from then
 * on (tracee/os/pagemap.h). The rest takes place from outside.
 */
#include "session/inspect/copy_ahead.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/uio.h>

#include "base/log.h"
#include "base/proc.h"
#include "malloc/memory_copy.h"
#include "tracee/control/attach.h"
#include "tracee/control/target.h"
#include "tracee/inject/inject.h"
#include "tracee/os/pagemap.h"
#include "tracee/state/target_options.h"

#define LEAST (UINT64_C(64) << 20)  /* less is copied as quickly as this is prepared */
#define ENOUGH (UINT64_C(2) << 20)  /* so little may be left: 1 ms */
#define ROUNDS 20u

/* -- the userfaultfd -- */

struct maker {
	struct target *target;
	int rc, uffd;
};

static void make_uffd(void *ctx, struct address_space *s)
{
	struct maker *m = ctx;

	m->rc = inject_userfaultfd(m->target, s, &m->uffd);
}

/* 0, or -errno: the kernel's, or of what prevents it. */
static int open_uffd(struct registry *registry, pid_t pid, int *uffd_out)
{
	const struct target_options options = {
		.only_reads = true, .makes_calls = true, .probes = {.none = true}};
	struct maker m = {.rc = -ESRCH, .uffd = -1};
	const struct event_sink sink = {.ctx = &m, .space_new = make_uffd};
	enum attach_problem problem;
	long detail;

	m.target = target_new(&options, &sink, registry);
	int rc = target_attach(m.target, pid, &problem, &detail);

	if (rc == 0)
		target_detach(m.target);
	target_free(m.target);
	*uffd_out = m.uffd;
	return rc ? rc : m.rc;
}

/* -- copying -- */

static ssize_t read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	struct iovec here = {buf, size}, there = {(void *)(uintptr_t)addr, size};

	return process_vm_readv(*(const pid_t *)ctx, &here, 1, &there, 1, 0);
}

static ssize_t scatter_memory(void *ctx, const struct iovec *to, const struct iovec *from,
			      size_t count)
{
	return process_vm_readv(*(const pid_t *)ctx, to, count, from, count, 0);
}

static void add_range(void *ctx, taddr_t start, taddr_t end)
{
	struct copy_ranges *r = ctx;

	*vec_add(&r->list) = (struct addr_range){start, end};
}

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
	const struct memory_source from = {
		.read = read_memory, .scatter = scatter_memory, .ctx = &w->pid};
	struct copy_ranges written = {0};
	uint64_t before = UINT64_MAX;
	int rc = 0;

	for (unsigned round = 0; round < ROUNDS && rc == 0; round++) {
		written.list.count = 0;
		rc = written_pages_next(w, add_range, &written);
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

	*written_out = (struct written_pages){.uffd = -1, .pagemap = -1};
	if (copy->capacity < LEAST)
		return;
	int rc = open_uffd(registry, pid, &uffd);

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
