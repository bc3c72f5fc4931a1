/* Leaves of a recording as CSV with a header line. */
#include "report/recording_csv.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/csv_text.h"
#include "base/vec.h"
#include "recording/recording_columns.h"
#include "recording/recording_site.h"
#include "report/recording_paths.h"

static void put_path(FILE *out, const struct recording *r, size_t leaf)
{
	VEC(uint64_t) frame = {0};

	for (uint64_t n = recording_get(r, RECORDING_LEAVES, leaf, LEAF_NODE); n > 0;
	     n = recording_get(r, RECORDING_NODES, n - 1, NODE_PARENT))
		*vec_add(&frame) = recording_get(r, RECORDING_NODES, n - 1, NODE_FRAME);
	putc('"', out);
	for (size_t i = frame.count; i-- > 0;) {
		_cleanup_free_ char *label = recording_frame_label(r, frame.data[i]);

		csv_put_quoted(out, label);
		if (i > 0)
			fputs(" > ", out);
	}
	fputs("\"\r\n", out);
	vec_deinit(&frame);
}

static void put_site(FILE *out, const struct recording *r, size_t leaf)
{
	int64_t node = recording_site(r, leaf);
	_cleanup_free_ char *label =
		node < 0 ? NULL :
			   recording_frame_label(r, recording_get(r, RECORDING_NODES, (size_t)node,
								  NODE_FRAME));

	putc('"', out);
	csv_put_quoted(out, label ? label : "[unknown]");
	fputs("\",", out);
}

/* Samples do not show which blocks were temporary. */
static void put_counters(FILE *out, const struct recording *r, size_t leaf)
{
	static const uint8_t counters[] = {LEAF_ALLOCATIONS, LEAF_BYTES, LEAF_TEMPORARY,
					   LEAF_REALLOCS, LEAF_MOVED, LEAF_MAX_BYTES,
					   LEAF_MAX_TIME};

	for (size_t c = 0; c < ARRAY_SIZE(counters); c++) {
		uint64_t value = recording_get(r, RECORDING_LEAVES, leaf, counters[c]);
		if (counters[c] == LEAF_ALLOCATIONS || counters[c] == LEAF_REALLOCS ||
		    counters[c] == LEAF_MOVED)
			recording_put_count(out, r, value);
		else if (!r->interval || counters[c] != LEAF_TEMPORARY)
			fprintf(out, "%" PRIu64, value);
		putc(',', out);
	}
}

void recording_csv_write(FILE *out, const struct recording *r, const struct recording_view *v)
{
	fprintf(out,
		"bytes,%sblocks,allocations,allocated_bytes,temporary,reallocs,moved,max_bytes,"
		"max_time_ms,call_site,path\r\n",
		r->interval ? "error," : "");
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes && !v->leaf[i].blocks)
			continue;
		fprintf(out, "%" PRIu64 ",", v->leaf[i].bytes);
		if (r->interval)
			fprintf(out, "%.0f,", recording_error(r, v->leaf[i].variance));
		recording_put_count(out, r, v->leaf[i].blocks);
		putc(',', out);
		put_counters(out, r, i);
		put_site(out, r, i);
		put_path(out, r, i);
	}
}
