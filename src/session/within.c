/*
 * Each call in progress has a table of the blocks that it has allocated, and sums by stack. As in
 * the profile, the state at the peak is not copied: a stack saves its bytes at its first change
 * after a new peak, whose number is the call's epoch.
 */
#include "session/within.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "output/gate.h"
#include "profile/profile.h"
#include "recording/recording.h"
#include "session/labels.h"
#include "session/record/recording_values.h"
#include "session/session.h"
#include "tracee/calls/calls.h"
#include "tracee/state/custom_probe.h"
#include "tracee/state/thread.h"

/* A stack that allocates in a call. */
struct within_stack {
	uint32_t node;
	uint64_t live, at_peak, epoch;
	uint64_t calls, bytes, temporary;
};

/* Counts size - base bytes: base is what it had before the call. */
struct within_block {
	taddr_t addr;
	uint64_t base, size;
	uint32_t stack;           /* index + 1; 0: none in the call */
};

/* In a realloc of @thread. */
struct within_moving {
	uint32_t thread;
	bool is_tracked;          /* it was in the table */
	struct within_block block;
};

struct within_open {
	const struct custom_probe *function;
	const struct custom_probe *until; /* of a section; NULL: it is a call */
	uint32_t thread;          /* 0 = all, of a section */
	taddr_t sp, return_pc;
	uint64_t live, peak, epoch;
	uint64_t allocations, allocated, temporary;
	taddr_t last;             /* the block allocated last; 0 = it was released */
	HASH(struct within_block) blocks;
	HASH(uint32_t) by_node;   /* indexes of stack */
	VEC(struct within_stack) stack;
	VEC(struct within_moving) moving;
};

struct within {
	VEC(struct within_open) open;
	VEC(struct within_sum) sum;
};

/* -- one call -- */

static void free_call(struct within_open *c)
{
	hash_deinit(&c->blocks);
	hash_deinit(&c->by_node);
	vec_deinit(&c->stack);
	vec_deinit(&c->moving);
}

static bool is_of(const struct within_open *c, const struct event *ev)
{
	return !c->thread || ev->thread == c->thread;
}

static uint32_t stack_of(struct within_open *c, uint32_t node)
{
	const uint32_t *known = hash_find(&c->by_node, hash_u64(node), e,
					  c->stack.data[*e].node == node);

	if (known)
		return *known + 1;
	*hash_add(&c->by_node, hash_u64(node)) = (uint32_t)c->stack.count;
	*vec_add(&c->stack) = (struct within_stack){.node = node, .epoch = c->epoch};
	return (uint32_t)c->stack.count;
}

static void change(struct within_open *c, const struct within_block *b, bool adds)
{
	uint64_t bytes = b->size > b->base ? b->size - b->base : 0;

	if (!b->stack)
		return;
	struct within_stack *s = &c->stack.data[b->stack - 1];

	if (s->epoch != c->epoch) {
		s->at_peak = s->live;
		s->epoch = c->epoch;
	}
	s->live += adds ? bytes : -bytes;
	c->live += adds ? bytes : -bytes;
}

static struct within_block *find_block(struct within_open *c, taddr_t addr)
{
	return hash_find(&c->blocks, hash_u64(addr), e, e->addr == addr);
}

static void add_block(struct within_open *c, const struct within_block *b)
{
	struct within_block *old = find_block(c, b->addr);

	if (old) { /* its release was not seen */
		change(c, old, false);
		*old = *b;
	} else {
		*hash_add(&c->blocks, hash_u64(b->addr)) = *b;
	}
	change(c, b, true);
}

/* The thread of @c has allocated: a block, or what a realloc has added. */
static void count_allocation(struct within_open *c, const struct within_block *b, uint64_t growth)
{
	struct within_stack *s = &c->stack.data[b->stack - 1];

	s->calls++;
	s->bytes += growth;
	c->allocations++;
	c->allocated += growth;
	c->last = b->addr;
}

/* The thread of @c has released @addr; @by: the stack that allocated it. */
static void count_release(struct within_open *c, taddr_t addr, uint32_t by)
{
	if (!addr || c->last != addr)
		return;
	c->temporary++;
	c->last = 0;
	if (by)
		c->stack.data[by - 1].temporary++;
}

static void free_block(struct within_open *c, taddr_t addr, bool is_own)
{
	struct within_block *b = find_block(c, addr);

	if (is_own)
		count_release(c, addr, b ? b->stack : 0);
	if (!b)
		return;
	change(c, b, false);
	hash_remove(&c->blocks, b);
}

static void begin_realloc(struct within_open *c, const struct event *ev, const struct profile *p)
{
	struct within_block *b = find_block(c, ev->old_addr);
	struct block block = {0};

	if (!b && !is_of(c, ev))
		return;
	struct within_moving *m = vec_add(&c->moving);

	*m = (struct within_moving){.thread = ev->thread, .is_tracked = b != NULL};
	if (b) {
		m->block = *b;
		hash_remove(&c->blocks, b);
	} else if (blocks_find(profile_blocks(p), ev->old_addr, &block)) {
		m->block = (struct within_block){ev->old_addr, block.size, block.size, 0};
	}
}

static void end_realloc(struct within_open *c, const struct event *ev)
{
	struct within_block old = {0};
	bool is_tracked = false, is_own = is_of(c, ev);

	for (size_t i = c->moving.count; i-- > 0;) {
		if (c->moving.data[i].thread != ev->thread)
			continue;
		old = c->moving.data[i].block;
		is_tracked = c->moving.data[i].is_tracked;
		c->moving.data[i] = c->moving.data[--c->moving.count];
		break;
	}
	if (!ev->addr && ev->size) { /* it has failed */
		if (is_tracked)
			*hash_add(&c->blocks, hash_u64(old.addr)) = old;
		return;
	}
	change(c, &old, false);
	if (!is_own)
		return;
	count_release(c, ev->old_addr, old.stack);
	if (!ev->addr)
		return;
	const struct within_block new = {ev->addr, old.base, ev->size, stack_of(c, ev->node)};

	add_block(c, &new);
	count_allocation(c, &new, ev->size > old.size ? ev->size - old.size : 0);
}

static void count_event(struct within_open *c, const struct event *ev, const struct profile *p)
{
	bool is_own = is_of(c, ev);
	struct within_block new = {ev->addr, 0, ev->size, 0};

	switch (ev->kind) {
	case EVENT_ALLOC:
		if (!is_own || !ev->addr)
			break;
		new.stack = stack_of(c, ev->node);
		add_block(c, &new);
		count_allocation(c, &new, ev->size);
		break;
	case EVENT_FREE:
		free_block(c, ev->addr, is_own);
		break;
	case EVENT_REALLOC_BEGIN:
		begin_realloc(c, ev, p);
		break;
	case EVENT_REALLOC_END:
		end_realloc(c, ev);
		break;
	}
	if (c->live <= c->peak)
		return;
	c->peak = c->live;
	c->epoch++;
}

/* -- the worst calls -- */

static double value_of(const struct within_open *c, enum limit_metric metric)
{
	switch (metric) {
	case LIMIT_ALLOCATIONS:
		return (double)c->allocations;
	case LIMIT_PEAK:
		return (double)c->peak;
	case LIMIT_LIVE:
		return (double)c->live;
	case LIMIT_ALLOCATED:
		return (double)c->allocated;
	case LIMIT_TEMPORARY:
		return amount_percent(c->temporary, c->allocations);
	case LIMIT_LEAKED:
	case LIMIT_RSS:
	case LIMIT_METRICS:
		break;
	}
	return 0;
}

static uint64_t amount_of(const struct within_open *c, const struct within_stack *s,
			  enum limit_metric metric)
{
	switch (metric) {
	case LIMIT_ALLOCATIONS:
		return s->calls;
	case LIMIT_PEAK:
		return s->epoch == c->epoch ? s->at_peak : s->live;
	case LIMIT_LIVE:
		return s->live;
	case LIMIT_ALLOCATED:
		return s->bytes;
	case LIMIT_TEMPORARY:
		return s->temporary;
	case LIMIT_LEAKED:
	case LIMIT_RSS:
	case LIMIT_METRICS:
		break;
	}
	return 0;
}

static struct within_sum *find_sum(const struct within *w, const struct custom_probe *function,
				   const struct custom_probe *until)
{
	for (size_t i = 0; w && i < w->sum.count; i++)
		if (w->sum.data[i].function == function && w->sum.data[i].until == until)
			return &w->sum.data[i];
	return NULL;
}

static struct within_sum *sum_of(struct within *w, const struct within_open *c)
{
	struct within_sum *known = find_sum(w, c->function, c->until);

	if (known)
		return known;
	*vec_add(&w->sum) = (struct within_sum){.function = c->function, .until = c->until};
	return &w->sum.data[w->sum.count - 1];
}

static void note_worst(struct within_sum *sum, const struct within_open *c,
		       enum limit_metric metric)
{
	struct within_worst *worst = &sum->worst[metric];
	double value = value_of(c, metric);

	if (sum->calls > 1 && value <= worst->value)
		return;
	worst->value = value;
	worst->number = sum->calls;
	worst->amount.count = 0;
	for (size_t i = 0; i < c->stack.count; i++) {
		uint64_t amount = amount_of(c, &c->stack.data[i], metric);

		if (amount)
			*vec_add(&worst->amount) =
				(struct within_amount){c->stack.data[i].node, amount};
	}
}

static void close_call(struct within *w, size_t i)
{
	struct within_open *c = &w->open.data[i];
	struct within_sum *sum = sum_of(w, c);

	sum->calls++;
	for (enum limit_metric m = 0; m < LIMIT_METRICS; m++)
		if (limit_info[m].of_calls)
			note_worst(sum, c, m);
	free_call(c);
	*c = w->open.data[--w->open.count];
}

/* -- a session -- */

static bool is_open(const struct within *w, const struct within_section *section)
{
	for (size_t i = 0; i < w->open.count; i++)
		if (w->open.data[i].function == section->from &&
		    w->open.data[i].until == section->to)
			return true;
	return false;
}

/* Ends and begins sections, in this order: a function may do both. */
static void enter(struct session *s, const struct custom_probe *function)
{
	struct within *w = s->within;

	for (size_t i = w->open.count; i-- > 0;)
		if (w->open.data[i].until == function)
			close_call(w, i);
	for (size_t i = 0; i < s->run->sections.count; i++) {
		const struct within_section *section = &s->run->sections.data[i];

		if (section->from == function && !is_open(w, section))
			*vec_add(&w->open) = (struct within_open){
				.function = function, .until = section->to, .epoch = 1};
	}
}

void session_within_begin(void *ctx, struct address_space *space, pid_t tid,
			  const struct within_call *call)
{
	struct session *s = space->sink.user;

	(void)ctx;
	if (call->function->is_label)
		labels_begin(s, tid, call);
	if (!s->within)
		s->within = xcalloc(1, sizeof(*s->within));
	enter(s, call->function);
	if (call->function->is_measured)
		*vec_add(&s->within->open) = (struct within_open){
			.function = call->function, .thread = (uint32_t)tid, .sp = call->sp,
			.return_pc = call->return_pc, .epoch = 1};
}

void session_within_end(void *ctx, struct address_space *space, pid_t tid,
			const struct custom_probe *function)
{
	struct session *s = space->sink.user;
	struct within *w = s->within;

	(void)ctx;
	if (function->is_label)
		labels_end(s, tid, function);
	for (size_t i = 0; w && i < w->open.count; i++) {
		const struct within_open *c = &w->open.data[i];

		if (c->thread == (uint32_t)tid && c->function == function) {
			close_call(w, i);
			return;
		}
	}
}

bool within_is_on(const struct session *s)
{
	return s->within && s->within->open.count > 0;
}

/* Whether an allocation's stack ends elsewhere than behind the call of @c. */
static bool is_elsewhere(const struct session *s, const struct within_open *c,
			 const struct event *ev)
{
	const struct calltree *tree = profile_calltree(s->heap.profile);
	uint32_t frame = ev->node ? calltree_node_frame(tree, ev->node) : 0;
	const struct calltree_frame *f = frame ? calltree_frame(tree, frame) : NULL;

	return f && f->module && f->key != c->return_pc - 1;
}

/*
 * An event's stack pointer is that of its caller. Where it is that behind the return of the call,
 * the function has jumped to malloc or free, as its last act, or its frame was left, and its caller
 * calls them: only stacks tell, which releases do not have.
 */
static bool is_left(const struct session *s, const struct within_open *c, const struct event *ev)
{
	taddr_t after = c->sp + arch_native->return_size;

	if (c->until || ev->thread != c->thread || !ev->sp || !within_is_above(c->sp, ev->sp))
		return false;
	return ev->sp > after || (ev->sp == after && is_elsewhere(s, c, ev));
}

void within_event(struct session *s, const struct event *ev)
{
	struct within *w = s->within;

	for (size_t i = w ? w->open.count : 0; i-- > 0;) {
		struct within_open *c = &w->open.data[i];

		if (!is_left(s, c, ev)) {
			count_event(c, ev, s->heap.profile);
			continue;
		}
		within_forget(s->run->target, s->space, (pid_t)c->thread, c->function);
		close_call(w, i);
	}
}

void within_thread_exit(struct session *s, uint32_t thread)
{
	for (size_t i = s->within ? s->within->open.count : 0; i-- > 0;)
		if (s->within->open.data[i].thread == thread)
			close_call(s->within, i);
}

void within_finish(struct session *s)
{
	while (within_is_on(s)) {
		struct within_open *last = &s->within->open.data[s->within->open.count - 1];

		if (!last->until) {
			close_call(s->within, s->within->open.count - 1);
			continue;
		}
		free_call(last);
		s->within->open.count--;
	}
}

const struct within_sum *within_find(const struct session *s, const struct custom_probe *function,
				     const struct custom_probe *until)
{
	return find_sum(s->within, function, until);
}

static bool is_measured(const struct custom_probe *until, enum limit_metric m)
{
	return until ? limit_info[m].of_sections : limit_info[m].of_calls;
}

static struct within_total *total_of(const struct within_sum *sum, within_totals *totals)
{
	for (size_t i = 0; i < totals->count; i++)
		if (totals->data[i].function == sum->function &&
		    totals->data[i].until == sum->until)
			return &totals->data[i];
	*vec_add(totals) =
		(struct within_total){.function = sum->function, .until = sum->until};
	return &totals->data[totals->count - 1];
}

void within_add(const struct session *s, within_totals *totals)
{
	for (size_t i = 0; s->within && i < s->within->sum.count; i++) {
		const struct within_sum *sum = &s->within->sum.data[i];
		struct within_total *total = total_of(sum, totals);

		for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
			if (total->calls && sum->worst[m].value <= total->most[m].value)
				continue;
			total->most[m].value = sum->worst[m].value;
			total->most[m].number = sum->worst[m].number;
			total->most[m].pid = s->process.pid;
		}
		total->calls += sum->calls;
		total->processes++;
	}
}

/* "3 calls of load", "2 parts between load and serve"; the caller frees it. */
static char *describe(const struct within_total *t)
{
	unsigned long long count = t->calls;

	if (t->until)
		return xasprintf("%llu part%s between %s and %s", count, plural(count),
				 t->function->text, t->until->text);
	return xasprintf("%llu call%s of %s", count, plural(count), t->function->text);
}

static void print_most(const struct within_total *t, enum limit_metric m)
{
	_cleanup_free_ char *text = limit_amount(m, t->most[m].value);
	_cleanup_free_ char *where =
		t->processes > 1 ? xasprintf(", process %u", t->most[m].pid) : xstrdup("");

	log_info("  %-12s %s (%s %llu%s)", limit_info[m].name, text, t->until ? "part" : "call",
		 (unsigned long long)t->most[m].number, where);
}

void within_print(const within_totals *totals)
{
	for (size_t i = 0; i < totals->count; i++) {
		const struct within_total *t = &totals->data[i];
		_cleanup_free_ char *calls = describe(t);

		if (t->processes > 1)
			log_info("%s in %zu processes, at most:", calls, t->processes);
		else
			log_info("process %u: %s, at most:", t->most[0].pid, calls);
		for (enum limit_metric m = 0; m < LIMIT_METRICS; m++)
			if (is_measured(t->until, m))
				print_most(t, m);
	}
}

void within_record(struct session *s)
{
	for (size_t i = 0; s->within && i < s->within->sum.count; i++) {
		const struct within_sum *sum = &s->within->sum.data[i];

		for (enum limit_metric m = 0; m < LIMIT_METRICS; m++) {
			const struct within_worst *worst = &sum->worst[m];

			if (!is_measured(sum->until, m))
				continue;
			recording_values_set(s, WITHIN_META, "%s %.17g %" PRIu64 " %" PRIu64
					     " %s %s%s%s", limit_info[m].name, worst->value,
					     worst->number, sum->calls,
					     sum->until ? "between" : "within",
					     sum->function->text, sum->until ? " and " : "",
					     sum->until ? sum->until->text : "");
		}
	}
}

void within_free(struct session *s)
{
	struct within *w = s->within;

	within_finish(s);
	for (size_t i = 0; w && i < w->sum.count; i++)
		for (enum limit_metric m = 0; m < LIMIT_METRICS; m++)
			vec_deinit(&w->sum.data[i].worst[m].amount);
	if (w) {
		vec_deinit(&w->open);
		vec_deinit(&w->sum);
	}
	free(w);
	s->within = NULL;
}
