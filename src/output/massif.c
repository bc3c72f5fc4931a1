/*
 * The massif.out format (doc/massif.md, sections 1.1 to 1.4):
 *
 *	FILE     := "desc: " OPTIONS NL "cmd: " COMMAND NL "time_unit: " UNIT NL SNAPSHOT*
 *	SNAPSHOT := RULE "snapshot=" K NL RULE "time=" T NL "mem_heap_B=" H NL
 *	            "mem_heap_extra_B=" E NL "mem_stacks_B=" M NL
 *	            "heap_tree=" ("empty" | ("detailed" | "peak") NL TREE)
 *	TREE     := "n" CHILDREN ": " BYTES " " TEXT NL CHILD*
 *	CHILD    := INDENT "n" CHILDREN ": " BYTES " 0x" ADDRESS ": " FRAME NL CHILD*
 *	          | INDENT "n0: " BYTES " in " COUNT
 *	            " places, all below massif's threshold (..%)" NL
 *	FRAME    := NAME [" (" FILE ":" LINE ")" | " (in " OBJECT ")" | " (in ???)"]
 *
 * An address with inlined functions has a line for each, nested; only the last has the real
 * children. Children are sorted by bytes, descending; equal ones as Valgrind would have mapped
 * them: by load order of their module, then by address, the aggregate line first. Names are looked
 * up only when printed, so a site below the threshold needs no symbols.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "output/massif.h"

struct child {
	uint64_t bytes;
	uint32_t node;   /* 0: the aggregate of @places insignificant children */
	uint32_t places;
	uint32_t load_order;
	uint64_t key;
};

struct massif_writer {
	FILE *file;
	int error;                      /* -errno of the first failed write; 0 so far */
	const struct report *report;
	struct report_tree *tree;
	struct report_leaves leaves;    /* of the current snapshot */
	uint64_t limit;                 /* smaller children go into the aggregate */
	VEC(struct child) children;     /* a stack of the siblings on the current path */
};

ATTR_PRINTF(2, 3) static void put(struct massif_writer *w, const char *fmt, ...)
{
	va_list args;

	if (w->error)
		return;
	va_start(args, fmt);
	if (vfprintf(w->file, fmt, args) < 0)
		w->error = errno ? -errno : -EIO;
	va_end(args);
}

/*
 * Foreign text, unchanged, except for line ends, which would end the record for readers and become
 * spaces, and for what acts on a terminal.
 */
static void put_text(struct massif_writer *w, const char *text)
{
	while (!w->error) {
		size_t n = strcspn(text, "\n");

		text_put_name(w->file, text, n);
		if (ferror(w->file))
			w->error = errno ? -errno : -EIO;
		if (!text[n])
			break;
		put(w, " ");
		text += n + 1;
	}
}

static void put_indent(struct massif_writer *w, uint32_t indent)
{
	put(w, "%*s", (int)indent, "");
}

/* The directory as shown by --fullpath-after, "" for none. */
static const char *shown_dir(const struct report *r, const char *dir)
{
	if (!dir || !r->fullpath_after_count)
		return "";
	for (size_t i = 0; i < r->fullpath_after_count; i++) {
		const char *at = strstr(dir, r->fullpath_after[i]);

		if (at) {
			dir = at + strlen(r->fullpath_after[i]);
			break;
		}
	}
	return strncmp(dir, "./", 2) == 0 ? dir + 2 : dir;
}

static void put_frame(struct massif_writer *w, const struct symbol *sym,
		      const struct symbol_frame *f)
{
	put_text(w, f->name ? f->name : "???");
	if (f->file && f->line) {
		const char *dir = shown_dir(w->report, f->dir);

		put(w, " (");
		put_text(w, dir);
		put(w, "%s", *dir ? "/" : "");
		put_text(w, f->file);
		put(w, ":%" PRIu32 ")", f->line);
	} else if (sym->object) {
		put(w, " (in ");
		put_text(w, sym->object);
		put(w, ")");
	} else if (f->name) {
		put(w, " (in %s)", "???"); /* separate literals, to avoid a trigraph */
	}
	put(w, "\n");
}

static int compare_children(const void *va, const void *vb)
{
	const struct child *a = va, *b = vb;

	if (a->bytes != b->bytes)
		return a->bytes > b->bytes ? -1 : 1;
	if (!a->node != !b->node)
		return a->node ? 1 : -1;
	if (a->load_order != b->load_order)
		return a->load_order < b->load_order ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static void add_child(struct massif_writer *w, uint32_t node, uint64_t bytes)
{
	uint32_t frame = report_tree_node(w->tree, node)->frame;
	const struct calltree_frame *f =
		calltree_frame(profile_calltree(w->report->profile), frame);

	*vec_add(&w->children) = (struct child){
		.bytes = bytes,
		.node = node,
		/* Code outside of modules was mapped late, but 0x0 is the initial image. */
		.load_order = f->module || !f->key ? f->module : UINT32_MAX,
		.key = f->key,
	};
}

/* Pushes the lines below @node, sorted; returns their number. */
static size_t push_children(struct massif_writer *w, uint32_t node)
{
	size_t first = w->children.count;
	struct child aggregate = {0};
	uint32_t c, children = report_tree_children(w->tree, node, &c);

	for (; children > 0; children--, c++) {
		if (report_tree_node(w->tree, c)->first_leaf > w->leaves.count)
			break; /* it and the following ones were first seen later */
		uint64_t bytes = report_tree_bytes(w->tree, c, &w->leaves);

		if (bytes >= w->limit) {
			add_child(w, c, bytes);
		} else {
			aggregate.bytes += bytes;
			aggregate.places++;
		}
	}
	if (aggregate.places)
		*vec_add(&w->children) = aggregate;

	size_t count = w->children.count - first;

	if (count > 1)
		qsort(&w->children.data[first], count, sizeof(struct child), compare_children);
	return count;
}

static void put_aggregate(struct massif_writer *w, const struct child *c, uint32_t indent)
{
	put_indent(w, indent);
	put(w, "n0: %" PRIu64 " in %" PRIu32 " place%s below massif's threshold (%.2f%%)\n",
	    c->bytes, c->places, c->places == 1 ? "," : "s, all", w->report->threshold);
}

static void put_node(struct massif_writer *w, const struct child *c, uint32_t indent);

/* Prints and pops the topmost @count children. */
static void put_children(struct massif_writer *w, size_t count, uint32_t indent)
{
	size_t first = w->children.count - count;

	for (size_t i = first; i < first + count && !w->error; i++) {
		struct child c = w->children.data[i];

		if (c.node)
			put_node(w, &c, indent);
		else
			put_aggregate(w, &c, indent);
	}
	w->children.count = first;
}

/* The recursion depth is limited by the filter's depth (200). */
static void put_node(struct massif_writer *w, const struct child *c, uint32_t indent)
{
	uint32_t frame = report_tree_node(w->tree, c->node)->frame;
	const struct calltree_frame *f =
		calltree_frame(profile_calltree(w->report->profile), frame);
	const struct symbol *sym = w->report->symbol(w->report->symbol_ctx, frame, SYMBOL_ALL);
	uint64_t key = f->key;
	size_t count = push_children(w, c->node);

	for (uint32_t i = 0; i < sym->count; i++, indent++) {
		put_indent(w, indent);
		put(w, "n%zu: %" PRIu64 " 0x%" PRIX64 ": ", i + 1 < sym->count ? 1 : count,
		    c->bytes, key);
		put_frame(w, sym, &sym->frame[i]);
	}
	put_children(w, count, indent);
}

static uint64_t significant_bytes(const struct snapshot *s, uint64_t tree_bytes, double threshold)
{
	if (!tree_bytes && threshold != 0)
		return 1;
	return (uint64_t)((double)(tree_bytes + s->extra + s->stacks) * threshold / 100);
}

static void put_tree(struct massif_writer *w, const char *root)
{
	size_t count = push_children(w, 0);

	put(w, "n%zu: %" PRIu64 " %s\n", count, report_tree_bytes(w->tree, 0, &w->leaves), root);
	put_children(w, count, 1);
}

int massif_write_tree(FILE *file, const struct massif_tree *t)
{
	struct massif_writer w = {
		.file = file,
		.report = t->report,
		.tree = t->tree,
		.leaves = t->leaves,
		.limit = t->limit,
	};

	put_tree(&w, t->root);
	vec_deinit(&w.children);
	return w.error;
}

static void put_record(struct massif_writer *w, uint32_t number, const struct snapshot *s,
		       uint64_t heap)
{
	static const char *const kind[] = {
		[SNAPSHOT_EMPTY] = "empty",
		[SNAPSHOT_DETAILED] = "detailed",
		[SNAPSHOT_PEAK] = "peak",
	};

	put(w, "#-----------\nsnapshot=%" PRIu32 "\n#-----------\n", number);
	put(w, "time=%" PRIu64 "\n", s->time);
	put(w, "mem_heap_B=%" PRIu64 "\n", heap);
	put(w, "mem_heap_extra_B=%" PRIu64 "\n", s->extra);
	put(w, "mem_stacks_B=%" PRIu64 "\n", s->stacks);
	put(w, "heap_tree=%s\n", kind[s->kind]);
}

/*
 * Record @number: snapshot @s, whose bytes are those of the profile's snapshot @i (UINT32_MAX:
 * now).
 */
static void put_snapshot(struct massif_writer *w, uint32_t number, struct snapshot s, uint32_t i)
{
	/* Without the heap Massif shows no tree, not even at the peak. */
	if (s.kind == SNAPSHOT_EMPTY || profile_options(w->report->profile)->no_heap) {
		s.kind = SNAPSHOT_EMPTY;
		put_record(w, number, &s, s.heap);
		return;
	}

	uint64_t *bytes, heap;

	w->leaves.count = profile_snapshot_leaves(w->report->profile, i, &bytes);
	w->leaves.bytes = bytes;
	heap = report_tree_bytes(w->tree, 0, &w->leaves);
	w->limit = significant_bytes(&s, heap, w->report->threshold);
	put_record(w, number, &s, heap);
	put_tree(w, memory_kind_root(w->report->memory));
	free(bytes);
}

static void put_header(struct massif_writer *w)
{
	static const char *const unit[] = {
		[TIME_MS] = "ms", [TIME_BYTES] = "B", [TIME_INSTRUCTIONS] = "i"};

	put(w, "desc: ");
	put_text(w, w->report->desc);
	put(w, "\ncmd: ");
	put_text(w, w->report->command);
	put(w, "\ntime_unit: %s\n", unit[profile_options(w->report->profile)->time_unit]);
}

int massif_write(FILE *file, const struct report *r, const struct snapshot *now)
{
	struct report_tree *tree = report_tree_new(r);
	struct massif_writer w = {.file = file, .report = r, .tree = tree};

	put_header(&w);
	if (now)
		put_snapshot(&w, 0, *now, UINT32_MAX);
	for (uint32_t i = 0; !now && i < profile_snapshot_count(r->profile) && !w.error; i++)
		put_snapshot(&w, i, *profile_snapshot(r->profile, i), i);
	if (!w.error && fflush(file))
		w.error = -errno;
	vec_deinit(&w.children);
	report_tree_free(tree);
	return w.error;
}
