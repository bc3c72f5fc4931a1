/* See recording_output.h. */
#include "report/recording_output.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "output/path_tree.h"
#include "recording/recording_json.h"
#include "recording/recording_site.h"
#include "report/recording_paths.h"

static const uint8_t counters[] = {LEAF_ALLOCATIONS, LEAF_BYTES, LEAF_TEMPORARY, LEAF_REALLOCS,
				   LEAF_MOVED, LEAF_MAX_BYTES, LEAF_MAX_TIME};

/* The leaves of one path. */
struct row {
	uint32_t node;         /* of the tree: the path */
	size_t leaf;           /* the first one */
	size_t leaves;
	struct recording_value value;
	uint64_t counter[ARRAY_SIZE(counters)];
};

struct rows {
	const struct recording *r;
	struct path_tree *paths;
	VEC(struct row) list;
	VEC(uint32_t) of_node; /* by node: index in the list + 1, 0 = none */
};

/* The node of the path of leaf @leaf. */
static uint32_t add_path(struct rows *rows, size_t leaf)
{
	const struct recording *r = rows->r;
	recording_frames frame = {0};
	uint32_t at = 0;

	recording_leaf_frames(r, leaf, &frame);
	for (size_t i = frame.count; i-- > 0;) {
		_cleanup_free_ char *label = recording_frame_label(r, frame.data[i]);

		at = path_tree_child(rows->paths, at, label, strlen(label));
	}
	vec_deinit(&frame);
	return at;
}

static struct row *get_row(struct rows *rows, size_t leaf)
{
	uint32_t node = add_path(rows, leaf);

	while (rows->of_node.count <= node)
		*vec_add(&rows->of_node) = 0;
	if (!rows->of_node.data[node]) {
		*vec_add(&rows->list) = (struct row){.node = node, .leaf = leaf};
		rows->of_node.data[node] = (uint32_t)rows->list.count;
	}
	return &rows->list.data[rows->of_node.data[node] - 1];
}

static void add_leaf(struct rows *rows, size_t leaf, const struct recording_value *value)
{
	struct row *row = get_row(rows, leaf);

	row->leaves++;
	recording_value_add(&row->value, value);
	for (size_t c = 0; c < ARRAY_SIZE(counters); c++)
		row->counter[c] += recording_get(rows->r, RECORDING_LEAVES, leaf, counters[c]);
}

/* -- output -- */

static void put_path(FILE *out, const struct path_tree *paths, uint32_t node)
{
	VEC(const char *) name = {0};

	for (; node; node = path_tree_node(paths, node)->parent)
		*vec_add(&name) = path_tree_node(paths, node)->name;
	csv_begin(out, name.count ? name.data[name.count - 1] : "");
	for (size_t i = name.count; i-- > 0;) {
		csv_put_quoted(out, name.data[i]);
		if (i > 0)
			fputs(" > ", out);
	}
	fputs("\"\r\n", out);
	vec_deinit(&name);
}

static void put_site(FILE *out, const struct recording *r, size_t leaf)
{
	_cleanup_free_ char *label = recording_site_label(r, recording_site(r, leaf));

	csv_begin(out, label);
	csv_put_quoted(out, label);
	fputs("\",", out);
}

/*
 * Samples do not show which blocks were temporary, and of several leaves it is not known how much
 * they had at once.
 */
static bool is_known(const struct recording *r, const struct row *row, uint8_t counter)
{
	if (counter == LEAF_TEMPORARY)
		return recording_knows_temporary(r);
	return row->leaves == 1 || (counter != LEAF_MAX_BYTES && counter != LEAF_MAX_TIME);
}

static void put_counters(FILE *out, const struct recording *r, const struct row *row)
{
	for (size_t c = 0; c < ARRAY_SIZE(counters); c++) {
		uint8_t counter = counters[c];
		bool is_number = counter == LEAF_BYTES || counter == LEAF_MAX_BYTES ||
				 counter == LEAF_MAX_TIME;

		if (is_known(r, row, counter) && is_number)
			fprintf(out, "%" PRIu64, row->counter[c]);
		else if (is_known(r, row, counter))
			recording_put_count(out, r, row->counter[c]);
		putc(',', out);
	}
}

static void put_row(FILE *out, const struct rows *rows, const struct row *row)
{
	const struct recording *r = rows->r;

	fprintf(out, "%" PRIu64 ",", row->value.bytes);
	if (r->interval)
		fprintf(out, "%.0f,", recording_error(r, row->value.variance));
	recording_put_count(out, r, row->value.blocks);
	putc(',', out);
	put_counters(out, r, row);
	put_site(out, r, row->leaf);
	put_path(out, rows->paths, row->node);
}

void recording_csv_write(FILE *out, const struct recording *r, const struct recording_view *v)
{
	struct rows rows = {.r = r, .paths = path_tree_new()};

	/* the counters are those of the whole run: without a range or thread all paths have them */
	bool wants_all = v->quantity == VIEW_PEAK || v->quantity == VIEW_AT;

	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++)
		if (v->leaf[i].bytes || v->leaf[i].blocks ||
		    (wants_all && (recording_get(r, RECORDING_LEAVES, i, LEAF_ALLOCATIONS) ||
				   recording_get(r, RECORDING_LEAVES, i, LEAF_REALLOCS))))
			add_leaf(&rows, i, &v->leaf[i]);
	fprintf(out,
		"bytes,%sblocks,allocations,allocated_bytes,temporary,reallocs,moved,max_bytes,"
		"max_time_ms,call_site,path\r\n",
		r->interval ? "error," : "");
	for (size_t i = 0; i < rows.list.count; i++)
		put_row(out, &rows, &rows.list.data[i]);
	path_tree_free(rows.paths);
	vec_deinit(&rows.list);
	vec_deinit(&rows.of_node);
}
