/*
 * /proc/PID/pagemap and /proc/PID/smaps, proc(5). See pagemap.h.
 */
#include "tracee/os/pagemap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/os/pagemap_scan.h"

#define PAGE_PRESENT (UINT64_C(1) << 63) /* bits of an entry of pagemap */
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGEMAP_BATCH 4096u

typedef void found_fn(void *ctx, taddr_t start, taddr_t end);

void present_open(pid_t pid, bool may_scan, struct present *out)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	*out = (struct present){.pid = pid, .may_scan = may_scan};
	out->pagemap = open(name, O_RDONLY | O_CLOEXEC);
}

void present_close(struct present *p)
{
	if (p->pagemap >= 0)
		close(p->pagemap);
	vec_deinit(&p->empty);
}

/* Returns the end of the scan: @end, or less if the kernel cannot scan. */
static taddr_t scan(int pagemap, taddr_t start, taddr_t end, found_fn *fn, void *ctx)
{
	struct pagemap_region region[PAGEMAP_REGIONS];
	int n = 0;

	while (start < end && n >= 0) {
		n = pagemap_scan(pagemap, SCAN_PRESENT | SCAN_SWAPPED, &start, end, region);
		for (int i = 0; i < n; i++)
			fn(ctx, region[i].start, region[i].end);
	}
	return start;
}

static void read_entries(int pagemap, taddr_t start, taddr_t end, found_fn *fn, void *ctx)
{
	uint64_t entry[PAGEMAP_BATCH];

	while (start < end) {
		size_t want = MIN((end - start) / PAGE_SIZE_MIN, PAGEMAP_BATCH);
		ssize_t got = pread(pagemap, entry, want * sizeof(*entry),
				    (off_t)(start / PAGE_SIZE_MIN * sizeof(*entry)));

		if (got < (ssize_t)sizeof(*entry)) {
			fn(ctx, start, end);
			return;
		}
		for (size_t i = 0; i < (size_t)got / sizeof(*entry); i++, start += PAGE_SIZE_MIN)
			if (entry[i] & (PAGE_PRESENT | PAGE_SWAPPED))
				fn(ctx, start, start + PAGE_SIZE_MIN);
	}
}

/* Whether a line of smaps shows that its mapping has pages. Huge ones are not in Rss. */
static bool line_has_pages(const char *line)
{
	static const char *const keys[] = {"Rss:", "Swap:", "Shared_Hugetlb:", "Private_Hugetlb:"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(line, keys[i], strlen(keys[i])) == 0)
			return strtoull(line + strlen(keys[i]), NULL, 10) > 0;
	return false;
}

static void read_empty(struct present *p)
{
	_cleanup_fclose_ FILE *f = proc_open(p->pid, "smaps");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool is_known_empty = false;

	p->has_empty = true;
	while (f && getline(&line, &size, f) > 0) {
		struct map m;
		if (maps_parse_line(line, &m) == 0) {
			free(m.path);
			*vec_add(&p->empty) = (struct present_range){m.start, m.end};
			is_known_empty = true;
		} else if (is_known_empty && line_has_pages(line)) {
			p->empty.count--;
			is_known_empty = false;
		}
	}
}

static bool is_empty(struct present *p, taddr_t start, taddr_t end)
{
	if (!p->has_empty)
		read_empty(p);
	size_t i = vec_search(&p->empty, e, e->end <= start);
	return i < p->empty.count && p->empty.data[i].start <= start && p->empty.data[i].end >= end;
}

void present_find(struct present *p, taddr_t start, taddr_t end, found_fn *fn, void *ctx)
{
	if (p->pagemap < 0) {
		fn(ctx, start, end);
		return;
	}
	if (p->may_scan)
		start = scan(p->pagemap, start, end, fn, ctx);
	if (start == end)
		return;
	p->may_scan = false;
	if (!is_empty(p, start, end))
		read_entries(p->pagemap, start, end, fn, ctx);
}
