/*
 * One tree of all paths, innermost frame first and without allocation
 * functions, serves all snapshots: a snapshot is one number for each of its
 * nodes. The grammar of the format is in output/massif.c.
 */
#include "report/recording_output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/report.h"
#include "recording/recording_view.h"
#include "report/recording_paths.h"

#define DETAILED_EACH 10u /* snapshots, as Massif's --detailed-freq */
#define MAX_DEPTH 200u	  /* as ptmem's --depth; functions further out are left out */

struct shown_child {
	uint64_t bytes;
	uint32_t node; /* 0: the aggregate of @places insignificant children */
	uint32_t places;
};

struct massif {
	FILE *out;
	const struct recording *r;
	double threshold;	    /* percent */
	struct path_tree *tree;	    /* names are "0xADDRESS: FRAME" */
	uint32_t *leaf_node;	    /* by leaf */
	uint64_t *bytes;	    /* by node of the tree, of the current snapshot */
	uint64_t limit;		    /* children below it go into the aggregate */
	uint32_t number;	    /* of the next snapshot */
	VEC(struct shown_child) children; /* a stack: those of the nodes on the way down */
};

/* -- the tree -- */

static char *frame_line(const struct recording *r, uint64_t frame)
{
	uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);
	uint64_t address = recording_get(r, RECORDING_FRAMES, frame, FRAME_ADDRESS);
	const char *path =
		object ?
			r->text.data[recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH)] :
			NULL;

	if (!recording_get(r, RECORDING_FRAMES, frame, FRAME_FUNCTION))
		return path ? xasprintf("0x%" PRIX64 ": ??? (in %s)", address, path) :
			      xasprintf("0x%" PRIX64 ": ???", address);
	_cleanup_free_ char *label = recording_frame_label(r, frame);

	if (recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE) || !path)
		return xasprintf("0x%" PRIX64 ": %s", address, label);
	_cleanup_free_ char *name = recording_frame_name(r, frame);

	return xasprintf("0x%" PRIX64 ": %s (in %s)", address, name, path);
}

static bool is_allocator(const struct recording *r, uint64_t node)
{
	uint64_t frame = recording_get(r, RECORDING_NODES, node - 1, NODE_FRAME);

	return recording_get(r, RECORDING_FRAMES, frame, FRAME_KIND) == KIND_ALLOCATOR;
}

/* The innermost node that Massif's tree would show, + 1; 0 = no stack. */
static uint64_t first_shown(const struct recording *r, size_t leaf)
{
	uint64_t node = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE), parent;

	while (node && is_allocator(r, node)) {
		parent = recording_get(r, RECORDING_NODES, node - 1, NODE_PARENT);
		if (!parent)
			break;
		node = parent;
	}
	return node;
}

static uint32_t add_path(struct massif *m, size_t leaf, char *const *line)
{
	static const char unknown[] = "0x0: ???";
	uint64_t node = first_shown(m->r, leaf);
	uint32_t at = 0;

	if (!node)
		return path_tree_child(m->tree, 0, unknown, strlen(unknown));
	for (unsigned n = 0; node && n < MAX_DEPTH; n++) {
		const char *text = line[recording_get(m->r, RECORDING_NODES, node - 1, NODE_FRAME)];

		at = path_tree_child(m->tree, at, text, strlen(text));
		node = recording_get(m->r, RECORDING_NODES, node - 1, NODE_PARENT);
	}
	return at;
}

static void make_tree(struct massif *m)
{
	size_t frames = recording_rows(m->r, RECORDING_FRAMES);
	size_t leaves = recording_rows(m->r, RECORDING_LEAVES);
	char **line = xcalloc(frames + 1, sizeof(*line));

	for (size_t i = 0; i < frames; i++)
		line[i] = frame_line(m->r, i);
	m->tree = path_tree_new();
	m->leaf_node = xcalloc(leaves + 1, sizeof(*m->leaf_node));
	for (size_t i = 0; i < leaves; i++)
		m->leaf_node[i] = add_path(m, i, line);
	for (size_t i = 0; i < frames; i++)
		free(line[i]);
	free(line);
	m->bytes = xcalloc(path_tree_node_count(m->tree), sizeof(*m->bytes));
}

static void sum_tree(struct massif *m, const struct recording_view *v)
{
	uint32_t nodes = path_tree_node_count(m->tree);

	memset(m->bytes, 0, nodes * sizeof(*m->bytes));
	for (size_t i = 0; i < recording_rows(m->r, RECORDING_LEAVES); i++)
		m->bytes[m->leaf_node[i]] += v->leaf[i].bytes;
	for (uint32_t i = nodes; i-- > 1;)
		m->bytes[path_tree_node(m->tree, i)->parent] += m->bytes[i];
}

/* -- lines -- */

/* The largest first; of equal ones the aggregate, then by address and name. */
static int compare_children(const void *va, const void *vb, void *ctx)
{
	const struct shown_child *a = va, *b = vb;
	const struct path_tree *t = ctx;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (!a->node || !b->node)
		return a->node ? 1 : -1;
	return strcmp(path_tree_node(t, a->node)->name, path_tree_node(t, b->node)->name);
}

/* Pushes the lines below @node, sorted; returns their number. */
static size_t push_children(struct massif *m, uint32_t node)
{
	size_t first = m->children.count;
	struct shown_child rest = {0};

	for (uint32_t c = path_tree_node(m->tree, node)->first_child; c;
	     c = path_tree_node(m->tree, c)->next_sibling) {
		if (m->bytes[c] && m->bytes[c] >= m->limit)
			*vec_add(&m->children) = (struct shown_child){m->bytes[c], c, 0};
		else if (m->bytes[c])
			rest = (struct shown_child){rest.bytes + m->bytes[c], 0, rest.places + 1};
	}
	if (rest.places)
		*vec_add(&m->children) = rest;
	size_t count = m->children.count - first;

	if (count > 1)
		qsort_r(&m->children.data[first], count, sizeof(rest), compare_children, m->tree);
	return count;
}

static void put_aggregate(struct massif *m, const struct shown_child *c, unsigned indent)
{
	fprintf(m->out,
		"%*sn0: %" PRIu64 " in %" PRIu32 " place%s below massif's threshold "
		"(%.2f%%)\n",
		(int)indent, "", c->bytes, c->places, c->places == 1 ? "," : "s, all",
		m->threshold);
}

/* Prints and pops the topmost @count children, and everything below them: at most MAX_DEPTH
 * levels. */
static void put_children(struct massif *m, size_t count, unsigned indent)
{
	size_t first = m->children.count - count;

	for (size_t i = first; i < first + count; i++) {
		struct shown_child c = m->children.data[i];

		if (!c.node) {
			put_aggregate(m, &c, indent);
			continue;
		}
		size_t below = push_children(m, c.node);

		fprintf(m->out, "%*sn%zu: %" PRIu64 " %s\n", (int)indent, "", below, c.bytes,
			path_tree_node(m->tree, c.node)->name);
		put_children(m, below, indent + 1);
	}
	m->children.count = first;
}

/* -- snapshots -- */

static void put_snapshot(struct massif *m, uint64_t time, const struct recording_view *v,
			 const char *kind)
{
	fprintf(m->out,
		"#-----------\nsnapshot=%" PRIu32 "\n#-----------\ntime=%" PRIu64
		"\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		m->number++, time, v->sum.bytes, kind);
	if (strcmp(kind, "empty") == 0)
		return;
	sum_tree(m, v);
	m->limit = (uint64_t)((double)v->sum.bytes * m->threshold / 100);
	size_t count = push_children(m, 0);

	fprintf(m->out, "n%zu: %" PRIu64 " %s\n", count, v->sum.bytes,
		memory_kind_root(MEMORY_HEAP));
	put_children(m, count, 1);
}

static void put_peak(struct massif *m)
{
	struct recording_view v;

	recording_view_of(&v, m->r, VIEW_PEAK);
	put_snapshot(m, recording_get(m->r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME), &v, "peak");
	recording_view_deinit(&v);
}

static void put_interval(struct massif *m, size_t i, uint64_t time)
{
	struct recording_view v;
	bool is_last = i + 1 == recording_rows(m->r, RECORDING_TIMELINE);
	bool is_detailed = i % DETAILED_EACH == DETAILED_EACH - 1 || is_last;

	recording_view_at(&v, m->r, (uint32_t)i);
	put_snapshot(m, time, &v, is_detailed && v.sum.bytes ? "detailed" : "empty");
	recording_view_deinit(&v);
}

/* The end of interval @i: the last one ends with the profile. */
static uint64_t end_of(const struct recording *r, size_t i)
{
	bool is_last = i + 1 == recording_rows(r, RECORDING_TIMELINE);
	const char *duration = is_last ? recording_meta(r, "duration") : NULL;
	uint64_t start = (uint64_t)i << r->shift;

	return duration ? MAX(start, (uint64_t)strtoull(duration, NULL, 10)) :
			  start + (UINT64_C(1) << r->shift);
}

/* In the order of time; the peak comes before the end of its interval. */
static void put_snapshots(struct massif *m)
{
	size_t intervals = recording_rows(m->r, RECORDING_TIMELINE);
	bool wants_peak = recording_rows(m->r, RECORDING_PEAK_AT) > 0 &&
			  recording_get(m->r, RECORDING_PEAK_AT, 0, PEAK_AT_BYTES) > 0;
	uint64_t peak = wants_peak ? recording_get(m->r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME) : 0;

	for (size_t i = 0; i < intervals; i++) {
		uint64_t time = end_of(m->r, i);

		if (wants_peak && (peak < time || i + 1 == intervals)) {
			put_peak(m);
			wants_peak = false;
			time = MAX(time, peak);
		}
		put_interval(m, i, time);
	}
}

/* A line end in a text would end its record. */
static void put_header(struct massif *m, const char *name, const char *value)
{
	_cleanup_free_ char *clean = text_clean(value ? value : "", value ? strlen(value) : 0);

	fprintf(m->out, "%s: %s\n", name, clean);
}

/* Readers recognize estimates by this option (massif_file.h). */
static void put_description(struct massif *m)
{
	const char *options = recording_meta(m->r, "options");
	_cleanup_free_ char *all = NULL;

	if (m->r->interval && !(options && strstr(options, "--heap-sample=")))
		all = xasprintf("%s --heap-sample=%" PRIu64 " # estimates", options ? options : "",
				m->r->interval);
	put_header(m, "desc", all ? all : options);
}

/* The only snapshot, with the values of @v. */
static void put_view(struct massif *m, const struct recording_view *v)
{
	size_t intervals = recording_rows(m->r, RECORDING_TIMELINE);
	bool is_moment = v->quantity == VIEW_AT || v->quantity == VIEW_RANGE ||
			 v->quantity == VIEW_OLDER;
	uint64_t time = 0;

	if (v->quantity == VIEW_PEAK && recording_rows(m->r, RECORDING_PEAK_AT))
		time = recording_get(m->r, RECORDING_PEAK_AT, 0, PEAK_AT_TIME);
	else if (intervals)
		time = end_of(m->r, is_moment ? v->last : intervals - 1);
	put_snapshot(m, time, v, v->sum.bytes ? "peak" : "empty");
}

void recording_massif_write(FILE *out, const struct recording *r,
			    const struct recording_view *view, double threshold)
{
	struct massif m = {.out = out, .r = r, .threshold = threshold};

	make_tree(&m);
	put_description(&m);
	put_header(&m, "cmd", recording_meta(r, "command"));
	put_header(&m, "time_unit", "ms");
	if (view)
		put_view(&m, view);
	else
		put_snapshots(&m);
	vec_deinit(&m.children);
	path_tree_free(m.tree);
	free(m.leaf_node);
	free(m.bytes);
}
