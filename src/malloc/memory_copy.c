/*
 * Copies in several threads. What is copied ahead has one place in the data for each page; pages
 * that are written later are read again, to the same place.
 */
#include "malloc/memory_copy.h"

#include <string.h>

#include "base/parallel.h"

#define PIECE (UINT64_C(256) << 10)
#define LANE_PIECES 8u
#define MORE (UINT64_C(1) << 20)
#define BATCH 64u /* of pieces, which are read together if there are many */

void copy_ranges_add(void *ranges, taddr_t start, taddr_t end)
{
	struct copy_ranges *r = ranges;

	*vec_add(&r->list) = (struct addr_range){start, end};
}

void memory_copy_init(struct memory_copy *c, uint64_t bytes)
{
	*c = (struct memory_copy){.capacity =
					  bytes ? ROUND_UP(bytes + bytes / 8 + MORE, PIECE) : 0};
	if (c->capacity == 0)
		return;
	c->data = huge_try_alloc(c->capacity);
	if (!c->data)
		c->capacity = 0; /* beyond a limit of ours */
	huge_touch(c->data, c->capacity);
}

void memory_copy_deinit(struct memory_copy *c)
{
	huge_free(c->data, c->capacity);
	vec_deinit(&c->parts.list);
	vec_deinit(&c->ahead.list);
	*c = (struct memory_copy){0};
}

void memory_copy_restart(struct memory_copy *c)
{
	c->ahead.list.count = 0;
	c->used = 0;
}

/* -- reading -- */

/* Pieces to be read, divided among CPUs. */
struct copy_job {
	const struct memory_source *from;
	uint8_t *data;
	struct copied_parts pieces;
	size_t batch;
	/* a CPU's pieces: neighbours, since the kernel has a lock for each 2 MiB of addresses */
	struct copied_share {
		size_t next, end;
	} share[PARALLEL_MAX];
	uint32_t shares;
};

static void add_pieces(struct copy_job *job, taddr_t start, taddr_t end, size_t at)
{
	while (start < end) {
		taddr_t next = MIN(start + PIECE, end);

		*vec_add(&job->pieces.list) = (struct copied_part){start, next, at};
		at += next - start;
		start = next;
	}
}

/* Page by page: some are gone. */
static void read_pages(const struct copy_job *job, const struct copied_part *p)
{
	for (taddr_t at = p->start; at < p->end; at += PAGE_SIZE_MIN)
		job->from->read(job->from->ctx, at, job->data + p->at + (at - p->start),
				PAGE_SIZE_MIN);
}

static void read_pieces(const struct copy_job *job, const struct copied_part *p, size_t count)
{
	struct iovec to[BATCH], from[BATCH];
	uint64_t bytes = 0;
	ssize_t got = -1;

	for (size_t i = 0; i < count; i++) {
		to[i] = (struct iovec){job->data + p[i].at, p[i].end - p[i].start};
		from[i] = (struct iovec){(void *)(uintptr_t)p[i].start, to[i].iov_len};
		bytes += to[i].iov_len;
	}
	if (job->from->scatter)
		got = job->from->scatter(job->from->ctx, to, from, count);
	else if (count == 1)
		got = job->from->read(job->from->ctx, p->start, to->iov_base, bytes);
	for (size_t i = 0; got != (ssize_t)bytes && i < count; i++)
		read_pages(job, &p[i]);
}

static void read_share(struct copy_job *job, struct copied_share *s)
{
	size_t i;

	while ((i = __atomic_fetch_add(&s->next, job->batch, __ATOMIC_RELAXED)) < s->end)
		read_pieces(job, &job->pieces.list.data[i], MIN(job->batch, s->end - i));
}

/* First its own, then what others have left. */
static void read_shares(void *ctx, uint32_t lane)
{
	struct copy_job *job = ctx;

	for (uint32_t i = 0; i < job->shares; i++)
		read_share(job, &job->share[(lane + i) % job->shares]);
}

static void job_run(struct copy_job *job)
{
	size_t count = job->pieces.list.count;

	job->shares = parallel_count(count / LANE_PIECES);
	job->batch = MAX(MIN(count / (job->shares * LANE_PIECES), (size_t)BATCH), (size_t)1);
	for (uint32_t i = 0; i < job->shares; i++)
		job->share[i] = (struct copied_share){count * i / job->shares,
						      count * (i + 1) / job->shares};
	parallel_for(job->shares, read_shares, job);
	vec_deinit(&job->pieces.list);
}

/* -- places -- */

/*
 * The first part of @range that is in one of @parts, or in none. *place_out: where in the data;
 * SIZE_MAX = nowhere. Returns its end. *i: the index where the last search ended; ranges ascend.
 */
static taddr_t find_place(const struct copied_parts *parts, size_t *i, struct addr_range range,
			  size_t *place_out)
{
	const struct copied_part *p = parts->list.data;
	taddr_t at = range.start;

	while (*i < parts->list.count && p[*i].end <= at)
		++*i;
	if (*i == parts->list.count || p[*i].start >= range.end) {
		*place_out = SIZE_MAX;
		return range.end;
	}
	if (p[*i].start > at) {
		*place_out = SIZE_MAX;
		return p[*i].start;
	}
	*place_out = p[*i].at + (at - p[*i].start);
	return MIN(p[*i].end, range.end);
}

bool memory_copy_ahead(struct memory_copy *c, const struct copy_ranges *written,
		       const struct memory_source *from)
{
	struct copy_job job = {.from = from, .data = c->data};
	size_t known = c->ahead.list.count, i = 0, place;
	struct copied_parts added = {0};

	for (size_t k = 0; k < written->list.count; k++) {
		struct addr_range r = written->list.data[k];

		while (r.start < r.end) {
			taddr_t end = find_place(&c->ahead, &i, r, &place);

			if (place == SIZE_MAX) {
				place = c->used;
				c->used += end - r.start;
				*vec_add(&added.list) = (struct copied_part){r.start, end, place};
			}
			add_pieces(&job, r.start, end, place);
			r.start = end;
		}
	}
	if (c->used > c->capacity) {
		vec_deinit(&job.pieces.list);
		vec_deinit(&added.list);
		memory_copy_restart(c);
		return false;
	}
	vec_append(&c->ahead.list, &added.list);
	if (known > 0 && added.list.count > 0)
		vec_sort(&c->ahead.list, taddr_compare);
	vec_deinit(&added.list);
	job_run(&job);
	return true;
}

static bool is_wanted(const struct resident *pages, const struct page_run *r)
{
	const struct map *m;

	if (!(r->flags & PAGE_OF_FILE))
		return true;
	m = maps_find(&pages->maps, r->start);
	return m && m->is_write;
}

/* What of [@start, @end), copied ahead to @place, is not @unchanged; *i as for find_place. */
static void add_changed(struct copy_job *job, const struct copy_ranges *unchanged, size_t *i,
			const struct copied_part *p)
{
	const struct addr_range *u = unchanged ? unchanged->list.data : NULL;
	size_t count = unchanged ? unchanged->list.count : 0;

	for (taddr_t at = p->start; at < p->end;) {
		while (*i < count && u[*i].end <= at)
			++*i;
		taddr_t next = *i < count ? u[*i].start : p->end;

		if (next > at) {
			next = MIN(next, p->end);
			add_pieces(job, at, next, p->at + (at - p->start));
			at = next;
		} else {
			at = MIN(u[*i].end, p->end);
		}
	}
}

bool memory_copy_make(struct memory_copy *c, const struct resident *pages,
		      const struct copy_ranges *unchanged, const struct memory_source *from)
{
	struct copy_job job = {.from = from, .data = c->data};
	size_t i = 0, k = 0, place, used = c->used;

	c->parts.list.count = 0;
	for (size_t n = 0; n < pages->list.count; n++) {
		struct addr_range r = {pages->list.data[n].start, pages->list.data[n].end};

		while (is_wanted(pages, &pages->list.data[n]) && r.start < r.end) {
			struct copied_part *p = vec_add(&c->parts.list);
			taddr_t end = find_place(&c->ahead, &i, r, &place);

			*p = (struct copied_part){r.start, end, place == SIZE_MAX ? used : place};
			if (place == SIZE_MAX) {
				used += end - r.start;
				add_pieces(&job, p->start, p->end, p->at);
			} else {
				add_changed(&job, unchanged, &k, p);
			}
			r.start = end;
		}
	}
	if (used > c->capacity) {
		vec_deinit(&job.pieces.list);
		return false;
	}
	job_run(&job);
	return true;
}

static ssize_t read_copy(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct memory_copy *c = ctx;
	size_t i = vec_search(&c->parts.list, e, e->end <= addr), done = 0;

	for (; done < size && i < c->parts.list.count; i++) {
		const struct copied_part *p = &c->parts.list.data[i];

		if (p->start > addr + done)
			break;
		size_t n = MIN(p->end - (addr + done), size - done);

		memcpy((uint8_t *)buf + done, c->data + p->at + (addr + done - p->start), n);
		done += n;
	}
	return done > 0 ? (ssize_t)done : -1;
}

static const void *find_copy(void *ctx, taddr_t addr, size_t size)
{
	const struct memory_copy *c = ctx;
	const struct copied_part *p = c->parts.list.data;
	size_t i = vec_search(&c->parts.list, e, e->end <= addr);

	return i < c->parts.list.count && p[i].start <= addr && p[i].end - addr >= size ?
		       c->data + p[i].at + (addr - p[i].start) : NULL;
}

void memory_copy_redirect(struct memory_copy *c, struct memory_source *source)
{
	*source = (struct memory_source){.read = read_copy, .at = find_copy, .ctx = c,
					 .read_file = source->read_file,
					 .file_ctx = source->file_ctx};
}
