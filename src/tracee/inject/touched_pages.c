/*
 * Each round splits the ranges of which some pages were accessed into as many parts as the limit of
 * mappings allows, counts, and joins them. Parts whose pages were all accessed, or none, are
 * decided; of the former the page tables say which pages are there. Splitting a mapping inside a
 * huge page would split the page, too: it is one part.
 *
 * Advice differs between neighbours and from what surrounds them, so that each part is a mapping:
 * two kinds in turn, neither of which is the mapping's own. A part that has the same as a mapping
 * beside its own is joined to that one by the kernel; the next round has the other kind there.
 */
#include "tracee/inject/touched_pages.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tracee/inject/inject.h"
#include "tracee/inject/seccomp.h"
#include "tracee/os/accessed.h"
#include "tracee/os/pagemap.h"
#include "tracee/state/journal.h"
#include "tracee/state/space.h"
#include "tracee/state/target_state.h"
#include "tracee/state/thread.h"

#define PIECES_MAX 16384u
#define HUGE_SIZE (UINT64_C(2) << 20)
#define BATCH 1024u /* of process_madvise: UIO_MAXIOV */
#define ROUNDS_MAX 64u
#define FEW_UNITS 1024u /* a round about no more is short */

static const int advice_value[] = {[ADVICE_NORMAL] = MADV_NORMAL,
				   [ADVICE_RANDOM] = MADV_RANDOM,
				   [ADVICE_SEQUENTIAL] = MADV_SEQUENTIAL};

/* -- calls -- */

struct caller {
	struct target *target;
	struct address_space *space;
	struct thread *thread;
	taddr_t scratch; /* memory of ours in the process, for arguments; 0 = none */
	int64_t self;    /* a pidfd of its own there; -1 = none */
	bool has_batches; /* process_madvise takes this advice (Linux 6.13) */
};

static int call(struct caller *c, long number, const uint64_t args[6], int64_t *result_out)
{
	int rc = inject_syscall(c->target, c->thread, number, args, result_out);

	return rc != 0 ? rc : *result_out < 0 && *result_out > -4096 ? (int)*result_out : 0;
}

static void caller_end(struct caller *c)
{
	int64_t result;

	if (c->scratch)
		call(c, SYS_munmap, (const uint64_t[6]){c->scratch, SCRATCH_SIZE}, &result);
	if (c->self >= 0)
		call(c, SYS_close, (const uint64_t[6]){(uint64_t)c->self}, &result);
}

/* Memory that is all there: to unmap it flushes the TLBs of all CPUs (33 pages would not). */
static int caller_begin(struct target *t, struct address_space *s, struct caller *out)
{
	const uint64_t map[6] = {0, SCRATCH_SIZE, PROT_READ | PROT_WRITE, SCRATCH_FLAGS,
				 (uint64_t)-1, 0};
	int64_t result;
	taddr_t at;

	*out = (struct caller){.target = t, .space = s, .thread = seccomp_pick_thread(t, s),
			       .self = -1};
	if (!out->thread)
		return -ESRCH;
	/* a process that has no journal was started by ptmem, and ends with it */
	if (seccomp_count_filters(out->thread->tid) != 0 ||
	    (s->recovery.journal && journal_find_injection(s, &at) != 0))
		return -ENOTSUP;
	int rc = inject_drain_sigtrap(t, out->thread);

	if (rc == 0)
		rc = call(out, SYS_mmap, map, &result);
	if (rc == 0)
		out->scratch = (taddr_t)result;
	return rc;
}

static int advise_one(struct caller *c, const struct iovec *range, enum map_advice advice)
{
	const uint64_t args[6] = {(uint64_t)(uintptr_t)range->iov_base, range->iov_len,
				  (uint64_t)advice_value[advice]};
	int64_t result;

	return call(c, SYS_madvise, args, &result);
}

/* All at once where the kernel can; what it has not done is done one by one. */
static int advise(struct caller *c, const struct iovec *range, size_t count, enum map_advice advice)
{
	int64_t result;
	int rc = 0;

	for (size_t i = 0; i < count && rc == 0 && c->has_batches; i += BATCH) {
		size_t n = MIN(count - i, (size_t)BATCH);
		const uint64_t args[6] = {(uint64_t)c->self, c->scratch, n,
					  (uint64_t)advice_value[advice], 0};

		rc = space_write(c->space, c->scratch, range + i, n * sizeof(*range));
		if (rc == 0)
			rc = call(c, SYS_process_madvise, args, &result);
		c->has_batches = rc != -EINVAL && rc != -ENOSYS && rc != -EPERM;
	}
	if (c->has_batches)
		return rc;
	rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = advise_one(c, &range[i], advice);
	return rc;
}

static void open_self(struct caller *c)
{
	const uint64_t args[6] = {(uint64_t)c->thread->process->pid};

	if (call(c, SYS_pidfd_open, args, &c->self) != 0)
		c->self = -1;
	c->has_batches = c->self >= 0;
}

int touched_pages_begin(struct target *t, struct address_space *s)
{
	struct caller c;
	int rc = caller_begin(t, s, &c);

	if (rc == 0)
		rc = accessed_clear(s->processes.reader);
	caller_end(&c); /* which flushes TLBs */
	return rc;
}

/* -- the search -- */

/* Some of its pages were accessed. */
struct mixed {
	taddr_t start, end;
	uint64_t unit;          /* it is split at multiples of this */
	enum map_advice advice; /* of its mapping */
};

struct search {
	struct caller caller;
	VEC(struct mixed) mixed;     /* ascending */
	VEC(struct access_count) sparse; /* all that is there was accessed */
	VEC(struct iovec) mappings;  /* that have mixed parts, as they were */
	VEC(enum map_advice) advice; /* of them */
	struct touched_pages *out;
};

static void add_touched(struct touched_pages *out, taddr_t start, taddr_t end, bool is_sure)
{
	*vec_add(&out->list) = (struct touched_range){start, end, is_sure};
}

/* Decides about [@c->start, @c->end) if its counts allow that; false: it is mixed. */
static bool decide(struct search *s, const struct access_count *c)
{
	if (c->accessed == 0)
		s->out->untouched += c->resident;
	else if (c->huge > 0 && c->end - c->start <= HUGE_SIZE)
		s->out->huge += c->resident, add_touched(s->out, c->start, c->end, false);
	else if (c->accessed >= c->resident && c->huge == 0 && c->resident < c->end - c->start)
		*vec_add(&s->sparse) = *c;
	else if (c->accessed >= c->resident && c->huge == 0)
		add_touched(s->out, c->start, c->end, true);
	else
		return false;
	return true;
}

static void add_mixed(struct search *s, const struct access_count *c, enum map_advice advice)
{
	uint64_t unit = c->huge ? HUGE_SIZE : PAGE_SIZE_MIN;

	*vec_add(&s->mixed) = (struct mixed){c->start, c->end, unit, advice};
}

static void judge_mappings(struct search *s, const struct access_counts *counts)
{
	for (size_t i = 0; i < counts->list.count; i++) {
		const struct access_count *c = &counts->list.data[i];

		if (c->start == s->caller.scratch)
			continue;
		if (!c->is_anonymous) {
			add_touched(s->out, c->start, c->end, false);
			continue;
		}
		s->out->resident += c->resident;
		if (decide(s, c))
			continue;
		add_mixed(s, c, c->advice);
		*vec_add(&s->mappings) = (struct iovec){(void *)(uintptr_t)c->start,
							c->end - c->start};
		*vec_add(&s->advice) = c->advice;
	}
}

/* How many more mappings the process may have for this: a quarter of those that it has left. */
static size_t pieces_allowed(size_t mappings)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	unsigned long most;

	if (!f || fscanf(f, "%lu", &most) != 1)
		return 0;
	return most > mappings ? MIN((most - mappings) / 4, (size_t)PIECES_MAX) : 0;
}

/* The end of the piece at @at, of at most @pieces pieces of @m and one up to a huge page. */
static taddr_t piece_end(const struct mixed *m, taddr_t at, size_t pieces)
{
	uint64_t size = ROUND_UP((m->end - m->start + pieces - 1) / pieces, m->unit);
	taddr_t end = MAX(ROUND_UP(at + 1, m->unit), ROUND_DOWN(at + size, m->unit));

	return MIN(end, m->end);
}

struct pieces {
	VEC(struct access_count) list;      /* ascending; to be counted */
	VEC(enum map_advice) of;            /* the advice of each one's mapping */
	struct piece_ranges {
		VEC(struct iovec) list;
	} by_advice[3];
};

static void pieces_deinit(struct pieces *p)
{
	vec_deinit(&p->list);
	vec_deinit(&p->of);
	for (size_t i = 0; i < ARRAY_SIZE(p->by_advice); i++)
		vec_deinit(&p->by_advice[i].list);
}

/*
 * Divides the first ranges into pieces; returns how many ranges. To cut a range out of its mapping
 * takes one mapping more than it has pieces.
 */
static size_t divide(const struct search *s, size_t allowed, struct pieces *out)
{
	uint64_t bytes = 0, n;
	size_t i;

	for (i = 0; i < s->mixed.count && i < allowed / 4; i++)
		bytes += s->mixed.data[i].end - s->mixed.data[i].start;
	n = i;
	for (i = 0; i < n; i++) {
		const struct mixed *m = &s->mixed.data[i];
		double share = (double)(m->end - m->start) / (double)bytes;
		size_t pieces = (size_t)(share * (double)(allowed - 4 * n)) + 2;

		for (taddr_t at = m->start, end; at < m->end; at = end) {
			enum map_advice advice =
				(m->advice + 1 + (out->list.count + s->out->rounds) % 2) %
				ARRAY_SIZE(out->by_advice);

			end = piece_end(m, at, pieces);
			*vec_add(&out->list) = (struct access_count){.start = at, .end = end};
			*vec_add(&out->of) = m->advice;
			*vec_add(&out->by_advice[advice].list) =
				(struct iovec){(void *)(uintptr_t)at, end - at};
		}
	}
	return n;
}

static int split(struct search *s, const struct pieces *p)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(p->by_advice) && rc == 0; i++)
		rc = advise(&s->caller, p->by_advice[i].list.data, p->by_advice[i].list.count,
			    (enum map_advice)i);
	return rc;
}

/* As they were, also if not all could be split. */
static int join(struct search *s)
{
	int rc = 0;

	for (size_t i = 0; i < s->mappings.count; i++) {
		int failed = advise_one(&s->caller, &s->mappings.data[i], s->advice.data[i]);

		rc = rc ? rc : failed;
	}
	return rc;
}

/* Decides about the pieces that are mappings; the others stay mixed. */
static int judge_pieces(struct search *s, struct pieces *p)
{
	struct access_counts now;
	int rc = accessed_read(s->caller.space->processes.reader, &now);

	for (size_t i = 0, k = 0; i < p->list.count && rc == 0; i++) {
		struct access_count *piece = &p->list.data[i];

		while (k < now.list.count && now.list.data[k].start < piece->start)
			k++;
		if (k == now.list.count || now.list.data[k].start != piece->start ||
		    now.list.data[k].end != piece->end) {
			add_mixed(s, piece, p->of.data[i]);
			continue;
		}
		*piece = now.list.data[k];
		if (!decide(s, piece))
			add_mixed(s, piece, p->of.data[i]);
	}
	vec_deinit(&now.list);
	return rc;
}

/* What is left after a round about thousands of pages is often a few beside other mappings. */
static bool is_little_left(const struct search *s)
{
	uint64_t units = 0;

	for (size_t i = 0; i < s->mixed.count; i++)
		units += (s->mixed.data[i].end - s->mixed.data[i].start) / s->mixed.data[i].unit;
	return units <= FEW_UNITS;
}

/* Splits, counts and joins once. */
static int run_round(struct search *s, size_t allowed)
{
	struct pieces p = {0};
	size_t n = divide(s, allowed, &p);
	int rc = split(s, &p), joined;

	if (rc == 0) {
		memmove(s->mixed.data, s->mixed.data + n,
			(s->mixed.count - n) * sizeof(*s->mixed.data));
		s->mixed.count -= n;
		rc = judge_pieces(s, &p);
	}
	joined = join(s);
	vec_sort(&s->mixed, taddr_compare);
	pieces_deinit(&p);
	s->out->rounds++;
	return rc ? rc : joined;
}

/* Of sparse ranges what is there; what was never touched, or is swapped out, is not. */
static void judge_sparse(struct search *s, pid_t pid)
{
	struct resident pages = {0};
	int rc = s->sparse.count ? resident_read(pid, &pages) : 0;

	for (size_t i = 0; i < s->sparse.count; i++) {
		const struct access_count *c = &s->sparse.data[i];

		if (rc != 0) {
			s->out->unresolved += c->end - c->start;
			add_touched(s->out, c->start, c->end, false);
			continue;
		}
		for (size_t k = resident_find(&pages, c->start);
		     k < pages.list.count && pages.list.data[k].start < c->end; k++) {
			const struct page_run *run = &pages.list.data[k];

			if (run->flags & PAGE_RESIDENT)
				add_touched(s->out, MAX(run->start, c->start),
					    MIN(run->end, c->end), true);
		}
	}
	resident_deinit(&pages);
}

/* What remains is not sure. */
static void finish(struct search *s)
{
	struct touched_pages *out = s->out;

	for (size_t i = 0; i < s->mixed.count; i++) {
		const struct mixed *m = &s->mixed.data[i];

		out->unresolved += m->end - m->start;
		add_touched(out, m->start, m->end, false);
	}
	vec_sort(&out->list, taddr_compare);
	vec_deinit(&s->mixed);
	vec_deinit(&s->sparse);
	vec_deinit(&s->mappings);
	vec_deinit(&s->advice);
}

int touched_pages_find(struct target *t, struct address_space *space, uint64_t most_ns,
		       struct touched_pages *out)
{
	struct search s = {.out = out};
	struct access_counts counts = {0};
	uint64_t end = clock_now_ns() + most_ns;
	int rc = caller_begin(t, space, &s.caller);

	*out = (struct touched_pages){0};
	if (rc == 0)
		rc = accessed_read(space->processes.reader, &counts);
	if (rc == 0) {
		size_t allowed = pieces_allowed(counts.list.count);

		open_self(&s.caller);
		judge_mappings(&s, &counts);
		for (unsigned i = 0; i < ROUNDS_MAX && rc == 0 && s.mixed.count > 0 &&
				     allowed >= 4 && (i == 0 || clock_now_ns() < end ||
						      is_little_left(&s)); i++)
			rc = run_round(&s, allowed);
		judge_sparse(&s, space->processes.reader);
	}
	caller_end(&s.caller);
	vec_deinit(&counts.list);
	finish(&s);
	return rc == -ENOMEM ? 0 : rc; /* too many mappings: what is known is right */
}
