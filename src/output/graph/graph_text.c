/* Ways are printed from the owner on; a site from its innermost function on. */
#include "output/graph/graph_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/text.h"

#define FUNCTIONS_SHOWN 8u

/* -- nodes -- */

char *graph_owner_text(const struct graph_owner *o)
{
	const char *object = o->object ? o->object : "an unknown object";

	switch (o->kind) {
	case OWNER_GLOBAL:
		return xasprintf("module %s", o->name ? o->name : "?");
	case OWNER_INTERPRETER:
		if (o->tid)
			return xasprintf("variables of thread %d", (int)o->tid);
		/* fallthrough */
	case OWNER_VARIABLE:
		return xasprintf("%s in %s", o->name ? o->name : "?", object);
	case OWNER_SECTION:
		return xasprintf("%s of %s", o->name ? o->name : "data", object);
	case OWNER_TLS:
		return o->name ? xasprintf("%s of thread %d in %s", o->name, (int)o->tid, object) :
				 xasprintf("variables of thread %d", (int)o->tid);
	case OWNER_STACK:
		return xasprintf("stack of thread %d", (int)o->tid);
	case OWNER_FRAME:
		return o->name ? xasprintf("frame of %s", o->name) :
				 xasprintf("frame at %#" PRIx64 " in %s", o->addr, object);
	case OWNER_REGISTERS:
		return xstrdup("registers");
	case OWNER_MAPPING:
		return o->name ? xasprintf("mapping of %s at %#" PRIx64, o->name, o->addr) :
				 xasprintf("mapping at %#" PRIx64, o->addr);
	default:
		return xstrdup("leaked: nothing leads to these");
	}
}

const char *graph_type_name(const struct heap_graph *g, uint32_t type)
{
	return type < g->types.count ? g->types.data[type] : NULL;
}

bool graph_type_is_size(const char *type)
{
	size_t length = strspn(type, "0123456789");

	if (length > 0 && text_begins_with(type + length, " to "))
		length += 4 + strspn(type + length + 4, "0123456789");
	return length > 0 && strcmp(type + length, " bytes") == 0;
}

char *graph_node_text(const struct heap_graph *g, uint32_t node)
{
	char number[AMOUNT_SIZE];

	if (!graph_is_block(g, node))
		return graph_owner_text(&g->owners.data[node - g->blocks]);
	const struct graph_block *b = &g->block[node];
	const char *type = graph_type_name(g, b->type);

	if (type && graph_type_is_size(type))
		type = NULL;
	return xasprintf("%#" PRIx64 "  %s byte%s%s%s", (uint64_t)b->addr,
			 amount_commas(b->size, number), plural(b->size), type ? ", " : "",
			 type ? type : "");
}

void graph_print_amount(FILE *f, uint64_t bytes, uint64_t blocks)
{
	_cleanup_free_ char *exact = amount_exact((double)bytes);
	char number[AMOUNT_SIZE];

	fprintf(f, "%s in %s block%s\n", exact, amount_commas(blocks, number), plural(blocks));
}

/* -- ways -- */

/* " +0x18": where a pointer is; nothing at the start, "+?" if it is far from there. */
static void print_place(FILE *f, uint32_t place)
{
	if (place == GRAPH_FAR)
		fprintf(f, "+?");
	else
		fprintf(f, "+%#" PRIx64, place * (uint64_t)sizeof(uint64_t));
}

static void print_field(struct graph_way_text *w, const char *field)
{
	if (w->is_many && text_begins_with(field, "[*]"))
		field += 3;
	fprintf(w->file, "%s%s", *field && *field != '[' && *field != '.' ? "." : "", field);
	if (*field)
		w->is_many = text_ends_in(field, "[*]");
}

void graph_way_begin(struct graph_way_text *w, const char *name, const char *field, uint32_t place)
{
	fprintf(w->file, "%s", name);
	if (field) {
		print_field(w, field);
	} else if (place != GRAPH_FAR) {
		fprintf(w->file, " ");
		print_place(w->file, place);
	}
}

void graph_way_step(struct graph_way_text *w, const char *type, const char *field, uint32_t place)
{
	if (!field || !type) {
		fprintf(w->file, " -> ");
		print_place(w->file, place);
		w->is_many = false;
		return;
	}
	bool is_node = text_begins_with(type, "node of ");

	if (is_node && w->is_many && strcmp(field, "next") == 0)
		return;
	if (!text_ends_in(type, "[]") && !(is_node && w->is_many)) {
		fprintf(w->file, " -> %s", type);
		w->is_many = false;
	}
	print_field(w, field);
}

/* -- patterns -- */

static void print_owner_step(struct graph_way_text *w, const struct heap_graph *g,
			     const struct graph_pattern *p)
{
	const struct graph_owner *o = &g->owners.data[p->of - GRAPH_FIELDS_OWNER];
	_cleanup_free_ char *text =
		o->kind == OWNER_LOST ? xstrdup("leaked") :
		!p->field || !o->name ? graph_owner_text(o) :
		o->kind == OWNER_TLS ? xasprintf("%s (thread %d)", o->name, (int)o->tid) :
				       xstrdup(o->name);

	graph_way_begin(w, text, p->field, p->place);
}

static void print_pattern_step(struct graph_way_text *w, const struct heap_graph *g,
			       const struct graph_pattern *p)
{
	const char *type = graph_type_name(g, p->of);

	if (p->is_many) {
		fprintf(w->file, " -> ...");
		w->is_many = false;
	}
	if (p->is_many && p->field && type && text_ends_in(type, "[]")) {
		fprintf(w->file, " -> %.*s", (int)strlen(type) - 2, type);
		print_field(w, p->field);
		return;
	}
	if (p->field || !type) {
		graph_way_step(w, type, p->field, p->place);
		return;
	}
	fprintf(w->file, " -> [%s]", type);
	if (p->place != GRAPH_FAR)
		print_place(w->file, p->place);
	w->is_many = false;
}

char *graph_pattern_text(const struct heap_graph *g, const struct graph_patterns *p,
			 uint32_t index)
{
	VEC(uint32_t) steps = {0};
	char *out = NULL;
	size_t size;
	struct graph_way_text text = {.file = open_memstream(&out, &size)};

	CHECK(text.file);
	if (index == 0)
		fprintf(text.file, "other ways");
	for (uint32_t i = index + 1; index > 0 && i; i = p->list.data[i - 1].before)
		*vec_add(&steps) = i - 1;
	while (steps.count > 0) {
		const struct graph_pattern *step = &p->list.data[steps.data[--steps.count]];

		if (step == &p->list.data[0])
			fprintf(text.file, "other ways");
		else if (step->of >= GRAPH_FIELDS_OWNER)
			print_owner_step(&text, g, step);
		else
			print_pattern_step(&text, g, step);
	}
	vec_deinit(&steps);
	CHECK(!fclose(text.file));
	return out;
}

/* -- sites -- */

char *graph_site_text(const struct heap_graph *g, uint32_t site)
{
	char *out = NULL;
	size_t size, count = 0;
	FILE *f = open_memstream(&out, &size);

	CHECK(f);
	if (!site)
		fprintf(f, "of unknown call paths");
	for (; site; site = g->sites->calls.data[site - 1].caller, count++) {
		if (count == FUNCTIONS_SHOWN) {
			fprintf(f, " <- ...");
			break;
		}
		fprintf(f, "%s%s", count ? " <- " : "", graph_site_function(g->sites, site));
	}
	CHECK(!fclose(f));
	return out;
}
