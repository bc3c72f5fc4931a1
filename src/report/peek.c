/*
 * Callers and callees of a function (recording_output.h). Of recursion its outermost call has the
 * caller, and its innermost one the callee: so the callers add up to the function, and so do the
 * callees with what it allocated itself.
 */
#include "report/recording_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/amount.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "report/recording_paths.h"

/* Frames with the same label. */
struct neighbour {
	char *label; /* owned; the first member */
	struct recording_value value;
	uint64_t allocations;
};

typedef VEC(struct neighbour) neighbours;

static int compare_values(const void *a, const void *b)
{
	const struct neighbour *x = a, *y = b;

	if (x->value.bytes != y->value.bytes)
		return x->value.bytes < y->value.bytes ? 1 : -1;
	if (x->allocations != y->allocations)
		return x->allocations < y->allocations ? 1 : -1;
	return text_compare(a, b);
}

static bool merge_neighbours(struct neighbour *to, struct neighbour *from)
{
	if (text_compare(to, from) != 0)
		return false;
	recording_value_add(&to->value, &from->value);
	to->allocations += from->allocations;
	free(from->label);
	return true;
}

static void merge(neighbours *n)
{
	vec_sort(n, text_compare);
	vec_merge(n, merge_neighbours);
	vec_sort(n, compare_values);
}

/* -- one function -- */

struct peek {
	const struct recording *r;
	const struct recording_view *view;
	bool *is_function; /* by row of FRAMES; owned */
	neighbours callers, callees;
	struct neighbour all, own;
};

static uint64_t frame_of(const struct recording *r, uint64_t node)
{
	return recording_get(r, RECORDING_NODES, node - 1, NODE_FRAME);
}

static void add_leaf(struct peek *p, size_t leaf)
{
	const struct recording *r = p->r;
	const struct recording_value *value = &p->view->leaf[leaf];
	uint64_t calls = recording_get(r, RECORDING_LEAVES, leaf, LEAF_ALLOCATIONS);
	uint64_t inner = 0, callee = 0, caller = 0, before = 0; /* nodes + 1 */

	if (!value->bytes && !value->blocks && !calls)
		return;
	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     before = n, n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT)) {
		if (!p->is_function[frame_of(r, n)])
			continue;
		if (!inner) {
			inner = n;
			callee = before;
		}
		caller = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT);
	}
	if (!inner)
		return;
	recording_value_add(&p->all.value, value);
	p->all.allocations += calls;
	*vec_add(&p->callers) = (struct neighbour){
		caller ? recording_frame_label(r, frame_of(r, caller)) :
			 xstrdup("[outermost function]"),
		*value, calls};
	if (callee) {
		*vec_add(&p->callees) = (struct neighbour){
			recording_frame_name(r, frame_of(r, callee)), *value, calls};
		return;
	}
	recording_value_add(&p->own.value, value);
	p->own.allocations += calls;
}

static void put_row(FILE *out, const struct peek *p, const struct neighbour *n, const char *indent)
{
	char bytes[AMOUNT_SIZE], blocks[AMOUNT_SIZE], calls[AMOUNT_SIZE], error[AMOUNT_SIZE];
	double held = (double)n->value.bytes, all = (double)p->all.value.bytes;
	_cleanup_free_ char *label = text_site_label(n->label);

	fprintf(out, "%15s ", amount_commas(n->value.bytes, bytes));
	if (p->r->interval)
		fprintf(out, "%-9s ",
			amount_error(held, recording_error(p->r, n->value.variance), error));
	fprintf(out, "%5.1f %% %12s %12s  %s%s\n", all > 0 ? 100 * held / all : 0,
		amount_commas(recording_count(p->r, n->value.blocks), blocks),
		amount_commas(recording_count(p->r, n->allocations), calls), indent, label);
}

static void put_rows(FILE *out, const struct peek *p, const neighbours *n,
		     const struct row_limits *limits)
{
	struct neighbour others = {0};
	size_t shown = 0;

	while (shown < n->count &&
	       row_limits_allow(limits, shown, n->data[shown].value.bytes, p->all.value.bytes))
		put_row(out, p, &n->data[shown++], "    ");
	for (size_t i = shown; i < n->count; i++) {
		recording_value_add(&others.value, &n->data[i].value);
		others.allocations += n->data[i].allocations;
	}
	size_t count = n->count - shown;

	others.label = xasprintf("[%zu other place%s]", count, plural(count));
	if (count)
		put_row(out, p, &others, "    ");
	free(others.label);
}

static void put(FILE *out, struct peek *p, const struct source_question *q)
{
	_cleanup_free_ char *name = text_clean(q->name, strlen(q->name));
	char itself[] = "[itself]";

	merge(&p->callers);
	merge(&p->callees);
	p->all.label = name;
	p->own.label = itself;
	fprintf(out, "\n%15s %s share %12s %12s  callers, the function, callees\n", "bytes",
		p->r->interval ? "+- error   " : "", "blocks", "allocations");
	put_rows(out, p, &p->callers, q->limits);
	put_row(out, p, &p->all, "");
	if (p->own.allocations || p->own.value.blocks)
		put_row(out, p, &p->own, "    ");
	put_rows(out, p, &p->callees, q->limits);
}

int recording_peek_print(FILE *out, const struct recording *r, const struct recording_view *v,
			 const struct source_question *q, char **why_out)
{
	size_t frames = recording_rows(r, RECORDING_FRAMES);
	struct peek p = {.r = r, .view = v};
	bool is_found = false;

	p.is_function = xcalloc(frames + 1, sizeof(*p.is_function));
	for (size_t i = 0; i < frames; i++) {
		_cleanup_free_ char *name = recording_frame_name(r, i);

		p.is_function[i] = text_is_function(name, q->name, strlen(q->name));
		is_found |= p.is_function[i];
	}
	for (size_t i = 0; is_found && i < recording_rows(r, RECORDING_LEAVES); i++)
		add_leaf(&p, i);
	if (is_found)
		put(out, &p, q);
	else
		*why_out = recording_not_found(r, false, q->name);
	vec_release(&p.callers, e, free(e->label));
	vec_release(&p.callees, e, free(e->label));
	free(p.is_function);
	return is_found ? 0 : -ENOENT;
}
