/* See recording_match.h. */
#include "report/recording_match.h"

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

/* By node: whether it or a caller of it matches. */
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

int recording_match(const struct recording *r, const char *match, bool **out, char **why_out)
{
	size_t leaves = recording_rows(r, RECORDING_LEAVES);
	regex_t regex;
	char text[256];
	int rc = match ? regcomp(&regex, match, REG_EXTENDED | REG_NOSUB) : 0;

	if (rc != 0) {
		regerror(rc, &regex, text, sizeof(text));
		*why_out = xasprintf("--match=%s: %s", match, text);
		return -EINVAL;
	}
	*out = match ? xcalloc(leaves + 1, sizeof(**out)) : NULL;
	if (!match)
		return 0;
	bool *node = matching_nodes(r, &regex);

	for (size_t i = 0; i < leaves; i++) {
		uint64_t n = recording_get(r, RECORDING_LEAVES, i, LEAF_NODE);

		(*out)[i] = n && node[n - 1];
	}
	free(node);
	regfree(&regex);
	return 0;
}
