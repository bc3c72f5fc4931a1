/* See recording_match.h. */
#include "recording/recording_match.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>

#include "base/alloc.h"

static bool frame_matches(const struct recording *r, size_t frame, const regex_t *regex)
{
	uint64_t object = recording_get(r, RECORDING_FRAMES, frame, FRAME_OBJECT);
	const uint64_t texts[] = {
		recording_get(r, RECORDING_FRAMES, frame, FRAME_FUNCTION),
		recording_get(r, RECORDING_FRAMES, frame, FRAME_FILE),
		object ? recording_get(r, RECORDING_OBJECTS, object - 1, OBJECT_PATH) : 0,
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i] && regexec(regex, r->text.data[texts[i]], 0, NULL, 0) == 0)
			return true;
	return false;
}

/* By node: whether it or one of its callers matches. */
static bool *matching_nodes(const struct recording *r, const regex_t *regex)
{
	size_t frames = recording_rows(r, RECORDING_FRAMES);
	size_t nodes = recording_rows(r, RECORDING_NODES);
	bool *frame = xcalloc(frames + 1, sizeof(*frame));
	bool *node = xcalloc(nodes + 1, sizeof(*node));

	for (size_t i = 0; i < frames; i++)
		frame[i] = frame_matches(r, i, regex);
	for (size_t i = 0; i < nodes; i++) {
		uint64_t parent = recording_get(r, RECORDING_NODES, i, NODE_PARENT);

		node[i] = frame[recording_get(r, RECORDING_NODES, i, NODE_FRAME)] ||
			  (parent && node[parent - 1]);
	}
	free(frame);
	return node;
}

static void copy_row(struct recording_table *t, size_t to, size_t from, unsigned columns)
{
	for (unsigned c = 0; c < columns; c++)
		t->column[c][to] = t->column[c][from];
}

/*
 * Numbers the rows of table @id whose value in @column is not 0 in @number, and replaces the
 * value.
 */
static void keep_rows(struct recording *r, enum recording_table_id id, unsigned column,
		      const uint64_t *number)
{
	struct recording_table *t = &r->table[id];
	size_t kept = 0;

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t value = number[t->column[column][i]];

		if (!value)
			continue;
		copy_row(t, kept, i, recording_table_info[id].columns);
		t->column[column][kept++] = value;
	}
	recording_truncate(r, id, kept);
}

/* The leaves of @is_wanted nodes: @number gets the new number of each, by index + 1. */
static void keep_leaves(struct recording *r, const bool *is_wanted, uint64_t *number)
{
	struct recording_table *t = &r->table[RECORDING_LEAVES];
	size_t kept = 0;

	for (size_t i = 0; i < t->rows; i++) {
		uint64_t node = t->column[LEAF_NODE][i];

		if (!node || !is_wanted[node - 1])
			continue;
		copy_row(t, kept++, i, LEAF_COLUMNS);
		number[i + 1] = kept;
	}
	recording_truncate(r, RECORDING_LEAVES, kept);
}

static void keep_releases(struct recording *r, const bool *is_wanted)
{
	size_t nodes = recording_rows(r, RECORDING_NODES);
	uint64_t *number = xcalloc(nodes + 1, sizeof(*number));

	for (size_t i = 0; i < nodes; i++)
		number[i + 1] = is_wanted[i] ? i + 1 : 0;
	keep_rows(r, RECORDING_RELEASES, RELEASE_NODE, number);
	free(number);
}

int recording_keep_matches(struct recording *r, const char *match, char **why_out)
{
	static const struct {
		enum recording_table_id id;
		unsigned column;
	} of_leaves[] = {
		{RECORDING_SIZES, BUCKET_LEAF}, {RECORDING_LIFETIMES, BUCKET_LEAF},
		{RECORDING_SHARES, SHARE_LEAF}, {RECORDING_CELLS, CELL_LEAF},
		{RECORDING_PEAK, PEAK_LEAF},    {RECORDING_LEAKS, LEAK_LEAF},
		{RECORDING_PINS, PIN_LEAF},
	};
	regex_t regex;
	char text[256];
	int rc = regcomp(&regex, match, REG_EXTENDED | REG_NOSUB);

	if (rc != 0) {
		regerror(rc, &regex, text, sizeof(text));
		*why_out = xasprintf("--match=%s: %s", match, text);
		return -EINVAL;
	}
	bool *node = matching_nodes(r, &regex);
	uint64_t *number = xcalloc(recording_rows(r, RECORDING_LEAVES) + 1, sizeof(*number));

	keep_leaves(r, node, number);
	for (size_t i = 0; i < ARRAY_SIZE(of_leaves); i++)
		keep_rows(r, of_leaves[i].id, of_leaves[i].column, number);
	keep_releases(r, node);
	free(number);
	free(node);
	regfree(&regex);
	return 0;
}
