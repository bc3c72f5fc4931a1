/* By /proc/PID/smaps and pagemap, proc(5), and process_vm_readv(2). */
#include "tracee/os/huge_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "tracee/os/accessed.h"
#include "tracee/os/pagemap.h"

#define CHUNK_SIZE (UINT64_C(2) << 20) /* read at once */

struct huge_reader {
	pid_t pid;
	uint64_t left;  /* bytes that may still be read */
	uint8_t *chunk; /* CHUNK_SIZE */
	struct huge_page_sums *out;
};

static void read_pages(void *ctx, taddr_t start, taddr_t end)
{
	struct huge_reader *r = ctx;

	end = MIN(end, start + ROUND_DOWN(r->left, (uint64_t)PAGE_SIZE_MIN));
	while (start < end) {
		struct iovec here = {r->chunk, MIN(end - start, CHUNK_SIZE)};
		struct iovec there = {(void *)(uintptr_t)start, here.iov_len};
		ssize_t got = process_vm_readv(r->pid, &here, 1, &there, 1, 0);

		if (got < (ssize_t)PAGE_SIZE_MIN)
			return;
		uint64_t read = ROUND_DOWN((uint64_t)got, (uint64_t)PAGE_SIZE_MIN);

		for (uint64_t at = 0; at < read; at += PAGE_SIZE_MIN)
			if (are_zeros(r->chunk + at, PAGE_SIZE_MIN))
				r->out->zeros += PAGE_SIZE_MIN;
		r->out->read += read;
		r->left -= read;
		start += read;
	}
}

/* Before Linux 6.7. */
static void read_full(struct huge_reader *r, const struct access_count *m)
{
	if (m->huge == m->end - m->start)
		read_pages(r, m->start, m->end);
}

int huge_pages_read(pid_t pid, uint64_t most, struct huge_page_sums *out)
{
	struct access_counts counts;
	int rc = accessed_read(pid, &counts);
	struct present pages;

	*out = (struct huge_page_sums){0};
	present_open(pid, true, &pages);
	_cleanup_free_ uint8_t *chunk = xmalloc(CHUNK_SIZE);
	struct huge_reader r = {pid, most, chunk, out};

	for (size_t i = 0; rc == 0 && i < counts.list.count; i++) {
		const struct access_count *m = &counts.list.data[i];

		if (!m->is_anonymous || m->huge == 0)
			continue;
		out->all += m->huge;
		if (present_find_huge(&pages, m->start, m->end, read_pages, &r) != 0)
			read_full(&r, m);
	}
	present_close(&pages);
	vec_deinit(&counts.list);
	/* it runs: there may be more of them by now */
	out->read = MIN(out->read, out->all);
	out->zeros = MIN(out->zeros, out->read);
	return rc;
}
