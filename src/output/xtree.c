/*
 * The xtree formats (doc/massif.md 2.15). Callgrind's:
 *
 *	FILE   := "# callgrind format" NL "version: 1" NL "creator: xtree-1" NL "pid: " N NL
 *	          "cmd: " COMMAND NL NL "positions: line" NL ("event: " NAME " : " TEXT NL)+
 *	          "events:" (" " NAME " ")+ NL STACK* "totals: " (VALUES | "(null)") NL
 *	STACK  := (PLACE LINE NL CALL)* PLACE LINE " " VALUES NL NL        outermost frame first
 *	PLACE  := "fl=" FILE NL "fn=" FUNCTION NL
 *	CALL   := "cfi=" FILE NL "cfn=" FUNCTION NL "calls=0 " LINE NL LINE " " VALUES NL
 *
 * where FILE and FUNCTION are "(" ID ")", followed by the name at the first use.
 * Inlined functions have no frames: the line is the innermost one, the function the real one. In
 * Massif's form each event is a snapshot with its tree.
 */
#include "output/massif.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "output/report_tree.h"

static const char *const event_text[FLOW_EVENT_COUNT] = {
	[FLOW_LIVE_BYTES] = "curB : currently allocated Bytes",
	[FLOW_LIVE_BLOCKS] = "curBk : currently allocated Blocks",
	[FLOW_TOTAL_BYTES] = "totB : total allocated Bytes",
	[FLOW_TOTAL_BLOCKS] = "totBk : total allocated Blocks",
	[FLOW_FREED_BYTES] = "totFdB : total Freed Bytes",
	[FLOW_FREED_BLOCKS] = "totFdBk : total Freed Blocks",
};

/* A name already written; the number is the order. */
struct written_name {
	char *text; /* owned */
	uint32_t id;
};

struct written_names {
	HASH(struct written_name) by_text;
};

struct xtree_writer {
	FILE *file;
	const struct report *report;
	struct shown_stack stack; /* event being written */
	const struct flows *flows;
	bool has_whole_names;
	unsigned event_count;
	uint64_t total[FLOW_EVENT_COUNT];
	struct written_names files, functions;
};

static void names_deinit(struct written_names *n)
{
	for (size_t i = 0; hash_next(&n->by_text.index, &i); i++)
		free(n->by_text.slot[i].text);
	hash_deinit(&n->by_text);
}

static void put_name(struct xtree_writer *w, const char *key, struct written_names *n,
		     const char *text)
{
	if (w->has_whole_names) {
		fprintf(w->file, "%s=", key);
		text_put_name(w->file, text, strlen(text));
		putc('\n', w->file);
		return;
	}
	uint64_t hash = hash_bytes(text, strlen(text));
	const struct written_name *known =
		hash_find(&n->by_text, hash, e, strcmp(e->text, text) == 0);

	if (known) {
		fprintf(w->file, "%s=(%" PRIu32 ")\n", key, known->id);
		return;
	}
	uint32_t id = (uint32_t)n->by_text.index.count + 1;

	*hash_add(&n->by_text, hash) = (struct written_name){xstrdup(text), id};
	fprintf(w->file, "%s=(%" PRIu32 ") ", key, id);
	text_put_name(w->file, text, strlen(text));
	putc('\n', w->file);
}

static uint32_t line_at(const struct xtree_writer *w, size_t i)
{
	const struct symbol_frame *f = &shown_stack_symbol(&w->stack, i)->frame[0];
	return f->file ? f->line : 0;
}

static void put_place(struct xtree_writer *w, size_t i, const char *file_key,
		      const char *function_key)
{
	const struct symbol *sym = shown_stack_symbol(&w->stack, i);
	const struct symbol_frame *place = &sym->frame[0], *real = &sym->frame[sym->count - 1];
	_cleanup_free_ char *path = NULL;
	if (place->file && place->dir && *place->dir)
		path = xasprintf("%s/%s", place->dir, place->file);
	put_name(w, file_key, &w->files,
		 path	     ? path :
		 place->file ? place->file :
			       "UnknownFile???");
	put_name(w, function_key, &w->functions, real->name ? real->name : "UnknownFn???");
}

static void put_values(struct xtree_writer *w, const uint64_t *value)
{
	for (unsigned e = 0; e < w->event_count; e++)
		fprintf(w->file, " %" PRIu64, value[e]);
	fputc('\n', w->file);
}

static void put_stack(struct xtree_writer *w, const struct flow *flow)
{
	if (!shown_stack_fill(&w->stack, flow->node))
		return;
	for (size_t i = w->stack.count; i-- > 0;) { /* nothing is stripped */
		put_place(w, i, "fl", "fn");
		fprintf(w->file, "%" PRIu32, line_at(w, i));
		if (i > 0) {
			fputc('\n', w->file);
			put_place(w, i - 1, "cfi", "cfn");
			fprintf(w->file, "calls=0 %" PRIu32 "\n%" PRIu32, line_at(w, i - 1),
				line_at(w, i));
		}
		put_values(w, flow->value);
	}
	fputc('\n', w->file);
}

static bool has_value(const struct xtree_writer *w, const struct flow *flow)
{
	for (unsigned e = 0; e < w->event_count; e++) {
		if (flow->value[e])
			return true;
	}
	return false;
}

static void put_head(struct xtree_writer *w)
{
	uint64_t interval = profile_options(w->report->profile)->sample_interval;
	fprintf(w->file,
		"# callgrind format\nversion: 1\ncreator: xtree-1\npid: %" PRIu32 "\ncmd: ",
		w->report->pid);
	text_put_name(w->file, w->report->command, strlen(w->report->command));
	fputs("\n\npositions: line\n", w->file);
	if (interval)
		fprintf(w->file, "desc: Estimates: --heap-sample=%" PRIu64 "\n", interval);
	for (unsigned e = 0; e < w->event_count; e++)
		fprintf(w->file, "event: %s\n", event_text[e]);
	fputs("events:", w->file);
	for (unsigned e = 0; e < w->event_count; e++)
		fprintf(w->file, " %.*s ", (int)strcspn(event_text[e], " "), event_text[e]);
	fputc('\n', w->file);
}

static void write_callgrind(struct xtree_writer *w)
{
	bool is_empty = true;
	put_head(w);
	for (uint32_t i = 0; i < flows_count(w->flows); i++) {
		const struct flow *flow = flows_get(w->flows, i);
		if (!has_value(w, flow))
			continue;
		put_stack(w, flow);
		is_empty = false;
	}
	fputs("totals:", w->file);
	if (is_empty)
		fputs(" (null)\n", w->file);
	else
		put_values(w, w->total);
}

/* The tree of live blocks omits stacks without live blocks; the full one contains them. */
static bool is_shown(const struct xtree_writer *w, uint32_t i)
{
	return flows_is_full(w->flows) || has_value(w, flows_get(w->flows, i));
}

static void write_snapshot(struct xtree_writer *w, unsigned event, struct report_tree *tree,
			   uint64_t time_ms)
{
	uint32_t count = 0;
	_cleanup_free_ uint64_t *bytes = xcalloc((size_t)flows_count(w->flows) + 1, sizeof(*bytes));
	for (uint32_t i = 0; i < flows_count(w->flows); i++) {
		if (is_shown(w, i))
			bytes[++count] = flows_get(w->flows, i)->value[event];
	}
	fprintf(w->file,
		"#-----------\nsnapshot=%u\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
		"\n"
		"mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n",
		event, time_ms, w->total[event]);
	const struct massif_tree t = {
		.report = w->report, .tree = tree, .leaves = {bytes, count},
		.limit = w->total[event] ? 0 : 1, /* of nothing all is below the threshold */
		.root = event_text[event],
	};
	massif_write_tree(w->file, &t);
}

static void write_massif(struct xtree_writer *w, uint64_t time_ms)
{
	uint64_t interval = profile_options(w->report->profile)->sample_interval;
	uint32_t count = 0;
	_cleanup_free_ uint32_t *nodes = xcalloc((size_t)flows_count(w->flows) + 1, sizeof(*nodes));
	for (uint32_t i = 0; i < flows_count(w->flows); i++) {
		if (is_shown(w, i))
			nodes[++count] = flows_get(w->flows, i)->node;
	}
	struct report_tree *tree = report_tree_new_of(w->report, nodes, count);
	fputs("desc: xtree.produce_report", w->file);
	if (interval)
		fprintf(w->file, " --heap-sample=%" PRIu64 " # the numbers are estimates",
			interval);
	fputs("\ncmd: ", w->file);
	text_put_name(w->file, w->report->command, strlen(w->report->command));
	fputs("\ntime_unit: ms\n", w->file);
	for (unsigned e = 0; e < w->event_count; e++)
		write_snapshot(w, e, tree, time_ms);
	report_tree_free(tree);
}

int xtree_write(FILE *file, const struct report *r, const struct flows *f,
		const struct xtree_options *o)
{
	struct xtree_writer w = {
		.file = file, .report = r, .stack.report = r, .flows = f,
		.has_whole_names = o->has_whole_names,
		.event_count = flows_is_full(f) ? FLOW_EVENT_COUNT : FLOW_TOTAL_BYTES,
	};
	for (uint32_t i = 0; i < flows_count(f); i++) {
		for (unsigned e = 0; e < w.event_count; e++)
			w.total[e] += flows_get(f, i)->value[e];
	}
	if (o->is_massif)
		write_massif(&w, o->time_ms);
	else
		write_callgrind(&w);
	shown_stack_deinit(&w.stack);
	names_deinit(&w.files);
	names_deinit(&w.functions);
	if (fflush(file))
		return -errno;
	return ferror(file) ? -EIO : 0;
}

bool xtree_is_massif_name(const char *path)
{
	return strstr(path, ".ms") != NULL;
}
