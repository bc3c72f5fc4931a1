/* See processes.h. All times are in us since the first process began. */
#include "recording/processes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recording/recording_view.h"

#define SAME_BOOT_S 5.0 /* CLOCK_REALTIME may have been set by that much during a run */

static double number_of(const struct recording *r, const char *key)
{
	const char *text = recording_meta(r, key);
	double value = text ? strtod(text, NULL) : 0;

	return isfinite(value) && value > 0 ? value : 0;
}

/* -- rows -- */

static uint64_t sum_leaks(const struct recording *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAKS); i++) {
		const char *kind = r->text.data[recording_get(r, RECORDING_LEAKS, i, LEAK_KIND)];

		if (strcmp(kind, "reachable") != 0)
			sum += recording_get(r, RECORDING_LEAKS, i, LEAK_BYTES);
	}
	return sum;
}

/* Of a recording that is not complete, what it has. */
static void fill_totals(struct processes_row *row, const struct recording *r)
{
	size_t ends = recording_rows(r, RECORDING_END);
	size_t last = recording_rows(r, RECORDING_TIMELINE);

	if (recording_rows(r, RECORDING_PEAK_AT))
		row->peak = recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES);
	row->leaked = sum_leaks(r);
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		row->allocations += recording_get(r, RECORDING_LEAVES, i, LEAF_ALLOCATIONS);
		row->allocated += recording_get(r, RECORDING_LEAVES, i, LEAF_BYTES);
	}
	if (ends) {
		row->live = recording_get(r, RECORDING_END, ends - 1, END_LIVE_BYTES);
		row->live_blocks = recording_get(r, RECORDING_END, ends - 1, END_LIVE_BLOCKS);
	} else if (last) {
		row->live = recording_get(r, RECORDING_TIMELINE, last - 1, TIME_LIVE_BYTES);
		row->live_blocks = recording_get(r, RECORDING_TIMELINE, last - 1, TIME_LIVE_BLOCKS);
	}
	row->live_blocks = recording_count(r, row->live_blocks);
	row->allocations = recording_count(r, row->allocations);
}

void processes_add(struct processes *p, struct recording *r, const char *name)
{
	const char *command = recording_meta(r, "command");
	struct processes_row *row = vec_add(&p->row);

	*row = (struct processes_row){
		.recording = r,
		.name = name ? text_clean(name, strlen(name)) : NULL,
		.command = text_clean(command ? command : "", command ? strlen(command) : 0),
		.pid = (uint64_t)number_of(r, "pid"),
		.parent_pid = (uint64_t)number_of(r, "parent"),
		.part = (unsigned)fmin(number_of(r, "part"), 1e9),
	};
	fill_totals(row, r);
}

void processes_add_unread(struct processes *p, const char *name, const char *problem)
{
	*vec_add(&p->row) = (struct processes_row){
		.name = text_clean(name, strlen(name)),
		.problem = xstrdup(problem),
		.command = xstrdup("")};
}

void processes_deinit(struct processes *p)
{
	for (size_t i = 0; i < p->row.count; i++) {
		struct processes_row *row = &p->row.data[i];

		recording_free(row->recording);
		free(row->name);
		free(row->problem);
		free(row->command);
		vec_deinit(&row->state);
	}
	vec_deinit(&p->row);
	vec_deinit(&p->moment);
}

/* -- the clock -- */

/* Whether all are of one boot of one machine: then CLOCK_MONOTONIC orders them. */
static bool is_one_boot(const struct processes *p)
{
	const char *host = NULL;
	double boot = 0;

	for (size_t i = 0; i < p->row.count; i++) {
		const struct recording *r = p->row.data[i].recording;
		const char *own = r ? recording_meta(r, "host") : NULL;

		if (!r)
			continue;
		double monotonic = number_of(r, "start_monotonic");
		double own_boot = number_of(r, "start") - monotonic;

		if (!monotonic || !own || (host && (strcmp(own, host) != 0 ||
						    fabs(own_boot - boot) > SAME_BOOT_S)))
			return false;
		host = own;
		boot = own_boot;
	}
	return true;
}

static void set_times(struct processes *p)
{
	const char *key = is_one_boot(p) ? "start_monotonic" : "start";
	double first = INFINITY;

	for (size_t i = 0; i < p->row.count; i++) {
		const struct recording *r = p->row.data[i].recording;

		if (r)
			first = fmin(first, number_of(r, key) + number_of(r, "lead") / 1e9);
	}
	for (size_t i = 0; i < p->row.count; i++) {
		struct processes_row *row = &p->row.data[i];

		if (!row->recording)
			continue;
		double zero = (number_of(row->recording, key) - first) * 1e6;
		double start = zero + number_of(row->recording, "lead") / 1e3;
		double length = fmax(recording_duration(row->recording), 0) * 1e3;

		row->zero = (uint64_t)fmin(fmax(zero, 0) + 0.5, 0x1p60);
		row->start = (uint64_t)fmin(start + 0.5, 0x1p60);
		row->end = MAX(row->start, row->zero + (uint64_t)fmin(length + 0.5, 0x1p60));
		p->end = MAX(p->end, row->end);
	}
}

/* -- the tree -- */

static int compare_starts(const void *a, const void *b)
{
	const struct processes_row *x = a, *y = b;

	if (!x->recording != !y->recording)
		return x->recording ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->part > y->part) - (x->part < y->part);
}

/* The row of the latest program of process @pid that had begun by then; + 1, 0 = none. */
static size_t latest(const struct processes *p, size_t before, uint64_t pid)
{
	for (size_t i = before; pid && i > 0; i--)
		if (p->row.data[i - 1].pid == pid && p->row.data[i - 1].recording)
			return i;
	return 0;
}

/*
 * The row of the parent of row @i; + 1, 0 = none. A parent that executed another program after it
 * had forked may have no row of that time: then it is the parent's parent.
 */
static size_t parent_of(const struct processes *p, size_t i)
{
	uint64_t pid = p->row.data[i].parent_pid;
	size_t before = latest(p, i, pid);

	for (size_t k = i + 1; pid && !before && k < p->row.count; k++)
		if (p->row.data[k].pid == pid && p->row.data[k].recording)
			return latest(p, i, p->row.data[k].parent_pid);
	return before;
}

/* Rows are by start, so a parent comes before its children. */
static void find_parents(struct processes *p)
{
	for (size_t i = 0; i < p->row.count; i++) {
		struct processes_row *row = &p->row.data[i];
		size_t same = latest(p, i, row->pid);
		const struct processes_row *before = same ? &p->row.data[same - 1] : NULL;
		/* a process of the same pid that has another parent is an earlier one */
		bool is_same = before && before->parent_pid == row->parent_pid;

		row->parent = !is_same		       ? parent_of(p, i) :
			      row->part > before->part ? before->parent :
							 same;
		row->depth = row->parent ? p->row.data[row->parent - 1].depth + 1 : 0;
	}
}

/* Appends the tree below row @at to @order. */
static void visit(const size_t *first, const size_t *next, size_t root, size_t *order,
		  size_t *count)
{
	VEC(size_t) stack = {0};

	*vec_add(&stack) = root;
	while (stack.count) {
		size_t at = stack.data[--stack.count], from = stack.count;

		order[(*count)++] = at;
		for (size_t child = first[at + 1]; child; child = next[child - 1])
			*vec_add(&stack) = child - 1;
		for (size_t k = 0; k < (stack.count - from) / 2; k++) {
			size_t other = stack.count - 1 - k, kept = stack.data[from + k];

			stack.data[from + k] = stack.data[other];
			stack.data[other] = kept;
		}
	}
	vec_deinit(&stack);
}

/* Puts each row behind its parent, and children in the order of their start. */
static void sort_as_tree(struct processes *p)
{
	size_t n = p->row.count, count = 0;
	/* by row + 1, 0 = no parent: the first child + 1; by row: the next child + 1 */
	size_t *first = xcalloc(n + 1, sizeof(*first)), *next = xcalloc(n + 1, sizeof(*next));
	size_t *order = xcalloc(n + 1, sizeof(*order)), *place = xcalloc(n + 1, sizeof(*place));
	struct processes_row *sorted = xcalloc(n + 1, sizeof(*sorted));

	for (size_t i = n; i-- > 0;) {
		next[i] = first[p->row.data[i].parent];
		first[p->row.data[i].parent] = i + 1;
	}
	for (size_t root = first[0]; root; root = next[root - 1])
		visit(first, next, root - 1, order, &count);
	for (size_t i = 0; i < n; i++)
		place[order[i]] = i;
	for (size_t i = 0; i < n; i++) {
		sorted[i] = p->row.data[order[i]];
		if (sorted[i].parent)
			sorted[i].parent = place[sorted[i].parent - 1] + 1;
	}
	if (n)
		memcpy(p->row.data, sorted, n * sizeof(*sorted));
	free(first);
	free(next);
	free(order);
	free(place);
	free(sorted);
}

/* -- moments -- */

/* A row has another state from then on. At equal times in the order of the kinds. */
struct change {
	uint64_t time;
	enum { CHANGE_INTERVAL, CHANGE_PEAK, CHANGE_END } kind;
	uint32_t state;
	size_t row;
};

struct changes {
	VEC(struct change) list;
};

static void add_changes(struct changes *c, const struct processes_row *row, size_t index)
{
	const struct recording *r = row->recording;
	size_t rows = recording_rows(r, RECORDING_TIMELINE);

	for (size_t i = 0; i < rows; i++) {
		uint64_t end = row->zero + (((uint64_t)(i + 1) << r->shift) * 1000);

		end = MIN(MAX(end, row->start), row->end);
		*vec_add(&c->list) =
			(struct change){end, CHANGE_INTERVAL, (uint32_t)i, index};
	}
	if (recording_rows(r, RECORDING_PEAK_AT)) {
		uint64_t ms = recording_get(r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME);
		uint64_t at = row->zero + MIN(ms, UINT64_MAX / 2000) * 1000;

		at = MIN(MAX(at, row->start), row->end);
		*vec_add(&c->list) =
			(struct change){at, CHANGE_PEAK, PROCESSES_AT_PEAK, index};
	}
	*vec_add(&c->list) =
		(struct change){row->end, CHANGE_END, PROCESSES_NOT_THERE, index};
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return (x->state > y->state) - (x->state < y->state);
}

static uint64_t bytes_in(const struct processes_row *row, uint32_t state)
{
	return state == PROCESSES_NOT_THERE ? 0 :
	       state == PROCESSES_AT_PEAK ?
		       row->peak :
		       recording_get(row->recording, RECORDING_TIMELINE, state, TIME_LIVE_BYTES);
}

/* The states of all rows while changes are applied in their order. */
struct sweep {
	const struct processes *p;
	const struct changes *changes;
	uint32_t *state;       /* by row */
	size_t next;           /* the next change */
	uint64_t bytes;        /* the sum */
};

static void begin_sweep(struct sweep *s, const struct processes *p, const struct changes *c)
{
	*s = (struct sweep){.p = p, .changes = c};
	s->state = xcalloc(p->row.count + 1, sizeof(*s->state));
	for (size_t i = 0; i < p->row.count; i++)
		s->state[i] = PROCESSES_NOT_THERE;
}

static void apply_next(struct sweep *s)
{
	const struct change *c = &s->changes->list.data[s->next++];
	const struct processes_row *row = &s->p->row.data[c->row];

	s->bytes += bytes_in(row, c->state) - bytes_in(row, s->state[c->row]);
	s->state[c->row] = c->state;
}

/*
 * For each part of the time the number of changes after which its total is largest: those before
 * the part, or more.
 */
static void choose(struct processes *p, const struct changes *c, size_t parts, size_t *chosen)
{
	uint64_t width = p->end / parts + 1;
	struct sweep s;

	begin_sweep(&s, p, c);
	for (size_t i = 0; i < parts; i++) {
		struct processes_moment *m = vec_add(&p->moment);

		*m = (struct processes_moment){.time = width * i, .bytes = s.bytes};
		chosen[i] = s.next;
		while (s.next < c->list.count && (i + 1 == parts ||
						  c->list.data[s.next].time < width * (i + 1))) {
			uint64_t time = c->list.data[s.next].time;

			apply_next(&s);
			if (s.bytes <= m->bytes)
				continue;
			m->bytes = s.bytes;
			m->time = time;
			chosen[i] = s.next;
		}
		if (m->bytes > p->moment.data[p->peak].bytes)
			p->peak = i;
	}
	free(s.state);
}

/* The states of all rows at the chosen moments. */
static void note_states(struct processes *p, const struct changes *c, const size_t *chosen)
{
	struct sweep s;

	begin_sweep(&s, p, c);
	for (size_t i = 0; i < p->moment.count; i++) {
		while (s.next < chosen[i])
			apply_next(&s);
		for (size_t k = 0; k < p->row.count; k++) {
			struct processes_row *row = &p->row.data[k];

			if (s.state[k] == PROCESSES_NOT_THERE)
				continue;
			if (!row->state.count)
				row->first_moment = i;
			*vec_add(&row->state) = s.state[k];
			p->moment.data[i].running++;
		}
	}
	free(s.state);
}

static void find_moments(struct processes *p)
{
	struct changes c = {0};
	size_t parts = (size_t)MIN(MAX(p->end / 1000, UINT64_C(1)), (uint64_t)PROCESSES_MOMENTS);
	size_t *chosen = xcalloc(parts, sizeof(*chosen));

	for (size_t i = 0; i < p->row.count; i++)
		if (p->row.data[i].recording)
			add_changes(&c, &p->row.data[i], i);
	vec_sort(&c.list, compare_changes);
	choose(p, &c, parts, chosen);
	note_states(p, &c, chosen);
	vec_deinit(&c.list);
	free(chosen);
}

void processes_finish(struct processes *p)
{
	set_times(p);
	vec_sort(&p->row, compare_starts);
	find_parents(p);
	sort_as_tree(p);
	find_moments(p);
}

/* -- questions -- */

const struct processes_row *processes_largest(const struct processes *p)
{
	const struct processes_row *largest = NULL;

	for (size_t i = 0; i < p->row.count; i++) {
		const struct processes_row *row = &p->row.data[i];

		if (row->recording && (!largest || row->peak > largest->peak))
			largest = row;
	}
	return largest;
}

uint32_t processes_state(const struct processes_row *row, size_t i)
{
	return i < row->first_moment || i - row->first_moment >= row->state.count ?
		       PROCESSES_NOT_THERE :
		       row->state.data[i - row->first_moment];
}

size_t processes_moment_at(const struct processes *p, uint64_t us)
{
	return MIN((size_t)(us / (p->end / p->moment.count + 1)), p->moment.count - 1);
}

void processes_view(const struct processes_row *row, uint32_t state, struct recording_view *out)
{
	if (state == PROCESSES_AT_PEAK)
		recording_view_of(out, row->recording, VIEW_PEAK);
	else
		recording_view_at(out, row->recording, state);
}
