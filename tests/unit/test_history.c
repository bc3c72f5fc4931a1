/*
 * Histories that are restarted: each is consistent, and together they are one. The other one, which
 * is not restarted, is the same as without that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profile/history.h"
#include "profile/profile.h"

#define NODES 4u
#define SLOTS 40u

struct world {
	uint64_t random, now_ns;
	struct profile *p, *single; /* of the same events; the second has one history */
	uint32_t node[NODES];
	taddr_t next;
	struct {
		taddr_t addr;
		unsigned part; /* in which it was allocated */
		bool is_live;
	} slot[SLOTS];
	unsigned part;
	uint64_t requests, bytes, releases, before; /* of all parts; blocks released in a later one */
};

static unsigned any(struct world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(w->random >> 33) % n;
}

static uint32_t add_node(struct profile *p, taddr_t pc)
{
	struct calltree *t = profile_calltree(p);

	return calltree_get_child(t, 0, calltree_get_frame(t, pc, 0));
}

static void world_init(struct world *w, uint64_t seed)
{
	struct profile_options o = {
		.peak_inaccuracy = 1, .detailed_freq = 10, .max_snapshots = 100, .heap_admin = 8,
		.alignment = 16, .keep_times = true, .keep_history = true, .keep_peak = true};

	*w = (struct world){.random = seed, .now_ns = 1000000, .next = 0x10000,
			    .single = profile_new(&o, 1000000)};
	o.keep_whole_history = true;
	w->p = profile_new(&o, 1000000);
	profile_start(w->p, w->now_ns);
	profile_start(w->single, w->now_ns);
	for (unsigned i = 0; i < NODES; i++) {
		w->node[i] = add_node(w->p, 0x1000 + i);
		assert_int_equal(add_node(w->single, 0x1000 + i), w->node[i]);
	}
}

static void world_deinit(struct world *w)
{
	profile_free(w->p);
	profile_free(w->single);
}

static void send(struct world *w, const struct event *ev)
{
	profile_event(w->p, ev);
	profile_event(w->single, ev);
}

static void step(struct world *w)
{
	unsigned i = any(w, SLOTS);
	struct event ev = {.kind = EVENT_FREE, .time_ns = w->now_ns, .thread = 1 + any(w, 2),
			   .addr = w->slot[i].addr};

	if (!w->slot[i].is_live) {
		w->next += 0x100;
		ev.kind = EVENT_ALLOC;
		ev.addr = w->next;
		ev.size = any(w, 200);
		ev.node = w->node[any(w, NODES)];
		w->slot[i].addr = w->next;
		w->slot[i].part = w->part;
		w->requests++;
		w->bytes += ev.size;
	} else {
		w->releases++;
		w->before += w->slot[i].part != w->part;
	}
	w->slot[i].is_live ^= true;
	send(w, &ev);
}

/* No more blocks died than were born; returns those born before that died. */
static uint64_t check_cells(const struct world *w)
{
	struct cell *cell;
	uint64_t died_before = 0, died = 0;

	profile_sync_history(w->p);
	profile_check(w->p);
	size_t n = cells_sorted(&profile_history(w->p)->cells, &cell);

	for (size_t i = 0; i < n; i++) {
		if (cell[i].died != CELL_NEVER) {
			died += cell[i].blocks;
			died_before += cell[i].born == CELL_BEFORE ? cell[i].blocks : 0;
			continue;
		}
		assert_true(cell[i].blocks >= died && cell[i].blocks < 1u << 20);
		died = 0;
	}
	assert_int_equal(died, 0);
	free(cell);
	return died_before;
}

/* Adds the sums of the history, which ends. */
static void end_part(const struct world *w, struct world *sums)
{
	const struct history *h = profile_history(w->p);

	sums->before += check_cells(w);
	sums->requests += h->interval[h->current].allocations;
	sums->bytes += h->interval[h->current].allocated_bytes;
	sums->releases += h->interval[h->current].releases;
	assert_true(h->peak.bytes >= profile_totals(w->p)->live_bytes);
}

/* Time passes until the next millisecond. */
static void pass_millisecond(struct world *w)
{
	w->now_ns = profile_next_ms(w->p);
	send(w, &(struct event){.kind = EVENT_RESIDENT, .time_ns = w->now_ns, .size = any(w, 9)});
}

static void restart(struct world *w)
{
	const struct history *h = profile_history(w->p);

	w->part++;
	profile_restart_history(w->p);
	profile_check(w->p);
	assert_int_equal(h->current, 0);
	assert_int_equal(h->peak.bytes, profile_totals(w->p)->live_bytes);
	assert_int_equal(h->peak.time_ns, 0);
}

static void same_histogram(const struct histogram *a, const struct histogram *b)
{
	assert_int_equal(a->size, b->size);
	if (!a->size)
		return;
	assert_int_equal(a->first, b->first);
	assert_memory_equal(a->count, b->count, a->size * sizeof(*a->count));
}

static void same_leaves(const struct world *w, const struct history *a, const struct history *b)
{
	assert_int_equal(a->leaf.count, b->leaf.count);
	for (uint32_t i = 1; i < a->leaf.count; i++) {
		const struct history_leaf *x = &a->leaf.data[i], *y = &b->leaf.data[i];
		const struct history_held p = profile_held_at_peak(w->p, a, i),
					  q = profile_held_at_peak(w->single, b, i);

		assert_memory_equal(&p, &q, sizeof(p));
		assert_int_equal(profile_at_peak(w->single, i).bytes, q.bytes);
		assert_int_equal(profile_at_peak(w->single, i).variance, q.variance);
		assert_int_equal(x->temporary, y->temporary);
		assert_int_equal(x->max_bytes, y->max_bytes);
		assert_int_equal(x->max_ms, y->max_ms);
		same_histogram(&x->sizes, &y->sizes);
		same_histogram(&x->lifetimes, &y->lifetimes);
		assert_int_equal(x->lived_us, y->lived_us);
	}
}

static void same_cells(const struct history *a, const struct history *b)
{
	struct cell *cell[2];
	size_t n = cells_sorted(&a->cells, &cell[0]);

	assert_int_equal(cells_sorted(&b->cells, &cell[1]), n);
	assert_memory_equal(cell[0], cell[1], n * sizeof(*cell[0]));
	free(cell[0]);
	free(cell[1]);
}

static void same_shares(const struct history *a, const struct history *b)
{
	struct history_share *share[2];
	size_t n = history_shares(a, &share[0]);

	assert_int_equal(history_shares(b, &share[1]), n);
	assert_memory_equal(share[0], share[1], n * sizeof(*share[0]));
	free(share[0]);
	free(share[1]);
}

/* The history that is not restarted. */
static void check_whole(const struct world *w)
{
	const struct history *a = profile_whole_history(w->p), *b = profile_history(w->single);

	assert_ptr_equal(b, profile_whole_history(w->single));
	profile_sync_history(w->p);
	profile_sync_history(w->single);
	assert_int_equal(a->current, b->current);
	assert_int_equal(a->shift, b->shift);
	assert_memory_equal(a->interval, b->interval, (a->current + 1) * sizeof(*a->interval));
	assert_memory_equal(&a->peak, &b->peak, sizeof(a->peak));
	same_leaves(w, a, b);
	same_cells(a, b);
	same_shares(a, b);
}

/* A forked child has both histories, too. */
static void go_on_in_child(struct world *w)
{
	struct profile *parent[] = {w->p, w->single};

	w->p = profile_clone(parent[0]);
	w->single = profile_clone(parent[1]);
	profile_free(parent[0]);
	profile_free(parent[1]);
}

static void run(uint64_t seed)
{
	struct world w, sums = {0};

	world_init(&w, seed);
	for (unsigned i = 0; i < 3000; i++) {
		step(&w);
		if (any(&w, 4) == 0)
			w.now_ns += any(&w, 3000000); /* often nothing: the same millisecond */
		if (any(&w, 60) == 0) {
			pass_millisecond(&w);
			end_part(&w, &sums);
			restart(&w);
		}
		if (i == 2000)
			go_on_in_child(&w);
	}
	end_part(&w, &sums);
	check_whole(&w);
	assert_int_equal(sums.requests, w.requests);
	assert_int_equal(sums.bytes, w.bytes);
	assert_int_equal(sums.releases, w.releases);
	assert_int_equal(sums.before, w.before);
	world_deinit(&w);
}

static void parts_add_up(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		run(seed);
}

/* Of the peak of all time only the profile knows then. */
static void each_part_has_its_peak(void **state)
{
	struct world w;
	struct event ev = {.kind = EVENT_ALLOC, .addr = 0x1000, .size = 5000, .time_ns = 2000000};

	world_init(&w, 1);
	ev.node = w.node[0];
	send(&w, &ev);
	send(&w, &(struct event){.kind = EVENT_FREE, .addr = 0x1000, .time_ns = 3000000});
	send(&w, &(struct event){.kind = EVENT_RESIDENT, .time_ns = 5000000});
	profile_restart_history(w.p);
	ev.time_ns = 9000000;
	ev.size = 70;
	send(&w, &ev);
	profile_sync_history(w.p);
	profile_check(w.p);
	const struct history *h = profile_history(w.p);

	assert_int_equal(h->peak.bytes, 70);
	assert_int_equal(h->peak.time_ns, 4000000);
	assert_int_equal(profile_held_at_peak(w.p, h, 1).bytes, 70);
	assert_int_equal(profile_at_peak(w.p, 1).bytes, 5000);
	assert_int_equal(profile_totals(w.p)->peak_bytes, 5000);
	assert_int_equal(profile_totals(w.p)->peak_time_ns, 1000000);
	check_whole(&w);
	world_deinit(&w);
}

/* Beyond 32 bits of milliseconds and 37 bits of microseconds. */
static void the_clock_goes_on(void **state)
{
	struct world w;

	world_init(&w, 1);
	assert_int_equal(profile_next_ms(w.p), 2000000);
	for (uint64_t s = 1; s < 20000000; s *= 2) {
		w.now_ns = s * 1000000000;
		step(&w);
		assert_int_equal(profile_next_ms(w.p), w.now_ns + 1000000);
	}
	profile_check(w.p);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(each_part_has_its_peak),
		cmocka_unit_test(the_clock_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
