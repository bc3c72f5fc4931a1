/*
 * ioctl PAGEMAP_SCAN on /proc/PID/pagemap: ranges of pages by category, since Linux 6.7.
 */
#include "tracee/os/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/proc.h"
#include "base/types.h"
#include "tracee/os/maps.h"

/* Categories: linux/fs.h. WATCHED: in a mapping with asynchronous write protection. */
#define SCAN_WATCHED (UINT64_C(1) << 0)
#define SCAN_WRITTEN (UINT64_C(1) << 1)
#define SCAN_FILE (UINT64_C(1) << 2)
#define SCAN_PRESENT (UINT64_C(1) << 3)
#define SCAN_SWAPPED (UINT64_C(1) << 4)
#define SCAN_ZERO (UINT64_C(1) << 5)
#define SCAN_HUGE (UINT64_C(1) << 6)

/*
 * As many as the kernel's own buffer holds. With more, it reports a page twice when that is full
 * (Linux 6.18; test_pagemap fails with 1024).
 */
#define PAGEMAP_REGIONS 512u

/* In the kernel's format: pages of the same categories. */
struct pagemap_region {
	uint64_t start, end, categories;
};

/* linux/fs.h */
struct scan_argument {
	uint64_t size;  /* of this */
	uint64_t flags, start, end;
	uint64_t walk_end; /* where the scan stopped */
	uint64_t regions, region_count, max_pages;
	uint64_t inverted, all_of, any_of, returned; /* categories */
};
#define SCAN _IOWR('f', 16, struct scan_argument)

/* A scan of [@start, @end) for pages that are present or swapped; what is to be known of them. */
static struct scan_argument scan_present(taddr_t start, taddr_t end, uint64_t categories)
{
	return (struct scan_argument){.size = sizeof(struct scan_argument),
				      .start = start, .end = end,
				      .any_of = SCAN_PRESENT | SCAN_SWAPPED,
				      .returned = categories};
}

/*
 * The next regions of @s, whose start becomes the end of the scan. Returns the number of regions,
 * or -errno; -EIO if the kernel makes no progress.
 */
static int pagemap_scan(int pagemap, struct scan_argument *s,
			struct pagemap_region region_out[PAGEMAP_REGIONS])
{
	int n;

	s->regions = (uint64_t)(uintptr_t)region_out;
	s->region_count = PAGEMAP_REGIONS;
	do
		n = ioctl(pagemap, SCAN, s);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (s->walk_end <= s->start)
		return -EIO;
	s->start = s->walk_end;
	return n;
}

/*
 * /proc/PID/pagemap and /proc/PID/smaps, proc(5). See pagemap.h.
 */

#define ENTRY_PRESENT (UINT64_C(1) << 63) /* bits of an entry of pagemap */
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_FILE (UINT64_C(1) << 61)
#define ENTRY_GUARD (UINT64_C(1) << 58) /* with SWAPPED; since Linux 6.15 */
#define ENTRY_EXCLUSIVE (UINT64_C(1) << 56)
#define PAGEMAP_BATCH 4096u

/* -1 with errno. */
static int open_pagemap(pid_t pid)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

void present_open(pid_t pid, bool may_scan, struct present *out)
{
	*out = (struct present){.pid = pid, .may_scan = may_scan, .pagemap = open_pagemap(pid)};
}

void present_close(struct present *p)
{
	if (p->pagemap >= 0)
		close(p->pagemap);
	vec_deinit(&p->empty);
}

/*
 * Whether there is a page. A guard page (MADV_GUARD_INSTALL, with which glibc 2.42 and later
 * protect stacks of threads) is none, although its entry says that it is swapped out.
 */
static bool entry_is_page(uint64_t entry)
{
	return entry & ENTRY_PRESENT || (entry & ENTRY_SWAPPED && !(entry & ENTRY_GUARD));
}

static void find_in_entries(int pagemap, taddr_t start, taddr_t end, pages_fn *fn, void *ctx)
{
	uint64_t entry[PAGEMAP_BATCH];

	while (start < end) {
		size_t want = MIN((end - start) / PAGE_SIZE_MIN, PAGEMAP_BATCH), i, first;
		ssize_t got = pread(pagemap, entry, want * sizeof(*entry),
				    (off_t)(start / PAGE_SIZE_MIN * sizeof(*entry)));

		if (got < (ssize_t)sizeof(*entry)) {
			fn(ctx, start, end);
			return;
		}
		size_t count = (size_t)got / sizeof(*entry);

		for (i = 0; i < count; i++) {
			for (first = i; i < count && entry_is_page(entry[i]); i++)
				;
			if (i > first)
				fn(ctx, start + first * PAGE_SIZE_MIN, start + i * PAGE_SIZE_MIN);
		}
		start += count * PAGE_SIZE_MIN;
	}
}

/* Returns the end of the scan: @end, or less if the kernel cannot scan. */
static taddr_t scan(int pagemap, taddr_t start, taddr_t end, pages_fn *fn, void *ctx)
{
	struct scan_argument s = scan_present(start, end, SCAN_PRESENT | SCAN_SWAPPED);
	struct pagemap_region region[PAGEMAP_REGIONS];
	int n = 0;

	while (s.start < end && n >= 0) {
		n = pagemap_scan(pagemap, &s, region);
		for (int i = 0; i < n; i++) {
			if (region[i].categories & SCAN_SWAPPED) /* or guard pages */
				find_in_entries(pagemap, region[i].start, region[i].end, fn, ctx);
			else
				fn(ctx, region[i].start, region[i].end);
		}
	}
	return s.start;
}

int present_find_huge(struct present *p, taddr_t start, taddr_t end, pages_fn *fn, void *ctx)
{
	struct scan_argument s = scan_present(start, end, SCAN_HUGE | SCAN_ZERO);
	struct pagemap_region region[PAGEMAP_REGIONS];

	while (p->pagemap >= 0 && s.start < end) {
		int n = pagemap_scan(p->pagemap, &s, region);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			if ((region[i].categories & (SCAN_HUGE | SCAN_ZERO)) == SCAN_HUGE)
				fn(ctx, region[i].start, region[i].end);
	}
	return p->pagemap >= 0 ? 0 : -EBADF;
}

/* Whether a line of smaps shows that its mapping has pages. Huge ones are not in Rss. */
static bool line_has_pages(const char *line)
{
	static const char *const keys[] = {"Rss:", "Swap:", "Shared_Hugetlb:", "Private_Hugetlb:"};

	uint64_t bytes;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (maps_take_bytes(line, keys[i], &bytes))
			return bytes > 0;
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

void present_find(struct present *p, taddr_t start, taddr_t end, pages_fn *fn, void *ctx)
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
		find_in_entries(p->pagemap, start, end, fn, ctx);
}

/*
 * /proc/PID/pagemap tells which pages there are, /proc/PID/smaps how many of each mapping count,
 * which takes several times longer. It is read only where their sum does not already show that all
 * of them do. See pagemap.h.
 */

struct pagemap_reader {
	pid_t pid;
	int pagemap;
	bool has_no_scan;
	struct resident *out;
	uint64_t *entry; /* PAGEMAP_BATCH */
	bool is_watched; /* the pages that were not written are wanted */
	VEC(struct present_range) unchanged;
};

/* -- ranges -- */

static void add_range(struct resident *p, size_t first, struct page_run r)
{
	struct page_run *last = p->list.count > first ? &p->list.data[p->list.count - 1] : NULL;

	if (last && last->end == r.start && last->flags == r.flags)
		last->end = r.end;
	else
		*vec_add(&p->list) = r;
}

static uint64_t count_bytes(const struct resident *p, size_t first, uint32_t flag)
{
	uint64_t bytes = 0;

	for (size_t i = first; i < p->list.count; i++)
		if (p->list.data[i].flags & flag)
			bytes += p->list.data[i].end - p->list.data[i].start;
	return bytes;
}

/* -- the pages of a mapping -- */

/* No page of it is a file's: which the kernel would have to find out for each. */
static bool is_anonymous(const struct map *m)
{
	return !m->is_shared &&
	       (!*m->path || strcmp(m->path, "[heap]") == 0 || map_is_main_stack(m) ||
		strncmp(m->path, "[anon:", 6) == 0);
}

struct page_adder {
	struct resident *out;
	size_t first;
	uint32_t flags;
};

static void add_pages_of(void *ctx, taddr_t start, taddr_t end)
{
	const struct page_adder *a = ctx;
	add_range(a->out, a->first, (struct page_run){start, end, a->flags});
}

/* Pages of @categories, which are pages in any way. */
static void add_region(struct pagemap_reader *r, const struct pagemap_region *region, size_t first)
{
	uint64_t c = region->categories;
	struct page_adder adder = {r->out, first, c & SCAN_SWAPPED ? PAGE_SWAPPED : PAGE_RESIDENT};

	if (c & SCAN_ZERO)
		return;
	if (c & SCAN_FILE)
		adder.flags |= PAGE_OF_FILE;
	if (c & SCAN_SWAPPED) /* or guard pages */
		find_in_entries(r->pagemap, region->start, region->end, add_pages_of, &adder);
	else
		add_pages_of(&adder, region->start, region->end);
}

static void add_unchanged(struct pagemap_reader *r, taddr_t start, taddr_t end, size_t first)
{
	struct page_adder adder = {r->out, first, PAGE_RESIDENT};

	if (start >= end)
		return;
	add_pages_of(&adder, start, end);
	*vec_add(&r->unchanged) = (struct present_range){start, end};
}

static int scan_regions(struct pagemap_reader *r, const struct map *m, size_t first)
{
	struct pagemap_region region[PAGEMAP_REGIONS];
	uint64_t categories = SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO;

	if (!is_anonymous(m))
		categories |= SCAN_FILE;
	struct scan_argument s = scan_present(m->start, m->end, categories);

	while (s.start < m->end) {
		int n = pagemap_scan(r->pagemap, &s, region);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++)
			add_region(r, &region[i], first);
	}
	return 0;
}

/*
 * The anonymous mapping @m, of whose pages most are present and were not written: all others are
 * listed, which takes a fourth of the time (1 ms per GiB).
 */
static int scan_exceptions(struct pagemap_reader *r, const struct map *m, size_t first)
{
	struct pagemap_region region[PAGEMAP_REGIONS];
	struct scan_argument s = scan_present(
		m->start, m->end,
		SCAN_WATCHED | SCAN_WRITTEN | SCAN_PRESENT | SCAN_SWAPPED | SCAN_ZERO);
	taddr_t at = m->start;

	s.inverted = SCAN_PRESENT | SCAN_WATCHED;
	s.any_of = s.inverted | SCAN_WRITTEN | SCAN_ZERO;
	while (s.start < m->end) {
		int n = pagemap_scan(r->pagemap, &s, region);

		if (n < 0)
			return n;
		for (int i = 0; i < n; i++) {
			add_unchanged(r, at, region[i].start, first);
			if (region[i].categories & (SCAN_PRESENT | SCAN_SWAPPED))
				add_region(r, &region[i], first);
			at = region[i].end;
		}
	}
	add_unchanged(r, at, m->end, first);
	return 0;
}

static bool is_zero_page(const struct pagemap_reader *r, taddr_t addr)
{
	uint64_t word[PAGE_SIZE_MIN / sizeof(uint64_t)];
	struct iovec here = {word, sizeof(word)};
	struct iovec there = {(void *)(uintptr_t)addr, sizeof(word)};

	if (process_vm_readv(r->pid, &here, 1, &there, 1, 0) != (ssize_t)sizeof(word))
		return false;
	return are_zeros(word, sizeof(word));
}

/* @entry is for a page of private memory. */
static uint32_t entry_flags(const struct pagemap_reader *r, uint64_t entry, taddr_t addr)
{
	if (!entry_is_page(entry))
		return 0;
	if (entry & ENTRY_SWAPPED)
		return PAGE_SWAPPED;
	if (entry & ENTRY_FILE)
		return PAGE_RESIDENT | PAGE_OF_FILE;
	return entry & ENTRY_EXCLUSIVE || !is_zero_page(r, addr) ? PAGE_RESIDENT : 0;
}

static int read_entries(struct pagemap_reader *r, const struct map *m, size_t first)
{
	if (!r->entry)
		r->entry = xmalloc(PAGEMAP_BATCH * sizeof(*r->entry));
	for (taddr_t at = m->start; at < m->end;) {
		size_t want = MIN((m->end - at) / PAGE_SIZE_MIN, PAGEMAP_BATCH) * sizeof(*r->entry);
		off_t offset = (off_t)(at / PAGE_SIZE_MIN * sizeof(*r->entry));
		ssize_t got = pread(r->pagemap, r->entry, want, offset);

		if (got < (ssize_t)sizeof(*r->entry))
			return got < 0 ? -errno : -ESRCH;
		for (size_t i = 0; i < (size_t)got / sizeof(*r->entry); i++) {
			uint32_t flags = entry_flags(r, r->entry[i], at);

			if (flags)
				add_range(r->out, first,
					  (struct page_run){at, at + PAGE_SIZE_MIN, flags});
			at += PAGE_SIZE_MIN;
		}
	}
	return 0;
}

/* -- mappings -- */

/* The values of a mapping in smaps, in bytes. */
struct counts {
	uint64_t resident, swapped;
};

static int add_pages(struct pagemap_reader *r, const struct map *m, const struct counts *c)
{
	struct resident *p = r->out;
	size_t first = p->list.count;
	int rc = -ENOTTY;

	if (c->resident == 0 && c->swapped == 0)
		return 0;
	if (!r->has_no_scan)
		rc = scan_regions(r, m, first);
	if (rc != 0) {
		r->has_no_scan = true;
		p->list.count = first;
		rc = read_entries(r, m, first);
	}
	uint64_t resident = count_bytes(p, first, PAGE_RESIDENT);

	p->resident += resident;
	p->swapped += count_bytes(p, first, PAGE_SWAPPED);
	p->differing += (int64_t)(resident - c->resident);
	return rc;
}

/* VmRSS and VmSwap. */
static void read_counters(struct pagemap_reader *r)
{
	_cleanup_fclose_ FILE *file = proc_open(r->pid, "status");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		(void)(maps_take_bytes(line, "VmRSS:", &r->out->rss) ||
		       maps_take_bytes(line, "VmSwap:", &r->out->swap));
}

/*
 * Whether all pages of all mappings are as many as the kernel counts, which has none for devices.
 * If not, nothing is taken.
 */
static bool scan_all(struct pagemap_reader *r)
{
	struct resident *p = r->out;
	int rc = maps_read(r->pid, &p->maps);

	for (size_t i = 0; i < p->maps.list.count && rc == 0; i++) {
		const struct map *m = &p->maps.list.data[i];

		/* this one is the kernel's own, above all others */
		if (strcmp(m->path, "[vsyscall]") == 0)
			continue;
		rc = r->is_watched && is_anonymous(m) ? scan_exceptions(r, m, p->list.count) :
							scan_regions(r, m, p->list.count);
	}
	p->resident = count_bytes(p, 0, PAGE_RESIDENT);
	p->swapped = count_bytes(p, 0, PAGE_SWAPPED);
	if (rc == 0 && p->resident == p->rss && p->swapped == p->swap)
		return true;
	maps_deinit(&p->maps);
	p->list.count = 0;
	p->resident = p->swapped = 0;
	return false;
}

static int read_smaps(struct pagemap_reader *r)
{
	_cleanup_fclose_ FILE *file = proc_open(r->pid, "smaps");
	_cleanup_free_ char *line = NULL;
	VEC(struct counts) counts = {0};
	size_t size = 0;
	ssize_t n;
	int rc = file ? 0 : -errno;

	while (file && (n = getline(&line, &size, file)) > 0) {
		struct counts *c = counts.count ? &counts.data[counts.count - 1] : NULL;
		struct map m;

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		if (c && (maps_take_bytes(line, "Rss:", &c->resident) ||
			  maps_take_bytes(line, "Swap:", &c->swapped)))
			continue;
		if (*line >= 'A' && *line <= 'Z')
			continue;
		if (maps_parse_line(line, &m) != 0)
			continue;
		*vec_add(&r->out->maps.list) = m;
		*vec_add(&counts) = (struct counts){0};
	}
	if (rc == 0 && counts.count == 0)
		rc = -ESRCH;
	for (size_t i = 0; i < counts.count && rc == 0; i++)
		rc = add_pages(r, &r->out->maps.list.data[i], &counts.data[i]);
	vec_deinit(&counts);
	return rc;
}

/* Ends with -errno and nothing in @r->out. */
static int read_resident(struct pagemap_reader *r)
{
	int rc;

	*r->out = (struct resident){0};
	r->pagemap = open_pagemap(r->pid);
	if (r->pagemap < 0)
		return -errno;
	read_counters(r);
	rc = scan_all(r) ? 0 : read_smaps(r);
	close(r->pagemap);
	free(r->entry);
	if (rc != 0)
		resident_deinit(r->out);
	return rc;
}

int resident_read(pid_t pid, struct resident *out)
{
	return read_resident(&(struct pagemap_reader){.pid = pid, .out = out});
}

int resident_read_watched(const struct written_pages *w, struct resident *out, pages_fn *unchanged,
			  void *ctx)
{
	struct pagemap_reader r = {.pid = w->pid, .out = out, .is_watched = true};
	int rc = read_resident(&r);

	/* known, even if the kernel's counters are not those of the pages */
	for (size_t i = 0; rc == 0 && i < r.unchanged.count; i++)
		unchanged(ctx, r.unchanged.data[i].start, r.unchanged.data[i].end);
	vec_deinit(&r.unchanged);
	return rc;
}

void resident_deinit(struct resident *p)
{
	maps_deinit(&p->maps);
	vec_deinit(&p->list);
}

size_t resident_find(const struct resident *p, taddr_t addr)
{
	return vec_search(&p->list, e, e->end <= addr);
}

taddr_t resident_next(const struct resident *p, taddr_t addr)
{
	size_t i = resident_find(p, addr);

	return i < p->list.count ? MAX(p->list.data[i].start, addr) : UINT64_MAX;
}

/* -- pages that were written -- */

/* linux/userfaultfd.h and linux/fs.h of Linux 6.7 */
#define WATCH_UNPOPULATED (UINT64_C(1) << 13)
#define WATCH_ASYNC (UINT64_C(1) << 15)
#define PROTECT_MATCHING (UINT64_C(1) << 0)

/* Those that are watched remain so; what cannot be watched is read while it is stopped. */
static void watch(struct written_pages *w, const struct maps *maps)
{
	w->list.count = 0;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		struct uffdio_register r = {.range = {m->start, m->end - m->start},
					    .mode = UFFDIO_REGISTER_MODE_WP};

		if (m->is_write && !m->is_shared && ioctl(w->uffd, UFFDIO_REGISTER, &r) == 0)
			*vec_add(&w->list) = (struct present_range){m->start, m->end};
	}
}

int written_pages_begin(pid_t pid, int uffd, struct written_pages *out)
{
	struct uffdio_api api = {.api = UFFD_API, .features = WATCH_UNPOPULATED | WATCH_ASYNC};
	int rc = 0;

	*out = (struct written_pages){.pid = pid, .uffd = uffd, .pagemap = open_pagemap(pid)};
	if (out->pagemap < 0 || ioctl(uffd, UFFDIO_API, &api) != 0)
		rc = -errno;
	if (rc != 0)
		written_pages_end(out);
	return rc;
}

void written_pages_end(struct written_pages *w)
{
	if (w->pagemap >= 0)
		close(w->pagemap);
	if (w->uffd >= 0)
		close(w->uffd);
	vec_deinit(&w->list);
	*w = (struct written_pages){.uffd = -1, .pagemap = -1};
}

/* The scan @s of all that is watched. */
static int each_region(const struct written_pages *w, struct scan_argument s, pages_fn *fn,
		       void *ctx)
{
	struct pagemap_region region[PAGEMAP_REGIONS];

	for (size_t i = 0; i < w->list.count; i++) {
		s.start = w->list.data[i].start;
		s.end = w->list.data[i].end;
		while (s.start < s.end) {
			int n = pagemap_scan(w->pagemap, &s, region);

			if (n < 0)
				return n;
			for (int k = 0; k < n; k++)
				fn(ctx, region[k].start, region[k].end);
		}
	}
	return 0;
}

int written_pages_next(struct written_pages *w, pages_fn *fn, void *ctx)
{
	struct scan_argument s = scan_present(0, 0, SCAN_WATCHED);
	struct maps maps;
	int rc = maps_read(w->pid, &maps);

	if (rc != 0)
		return rc;
	watch(w, &maps);
	maps_deinit(&maps);
	s.flags = PROTECT_MATCHING;
	s.all_of = SCAN_WRITTEN | SCAN_WATCHED;
	return each_region(w, s, fn, ctx);
}
