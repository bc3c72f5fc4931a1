/* See recording_output.h. */
#include "report/recording_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_json.h"

static void put_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	recording_put_string(out, text);
}

enum column { COLUMN_LEAF, COLUMN_BYTES, COLUMN_BLOCKS, COLUMN_VARIANCE };

static void put_member_of(FILE *out, const struct recording *r, const struct recording_value *value,
		      enum column column)
{
	if (column == COLUMN_BLOCKS)
		recording_put_count(out, r, value->blocks);
	else if (column == COLUMN_VARIANCE)
		recording_put_variance(out, r, (uint64_t)fmin(value->variance, 0x1p63));
	else
		fprintf(out, "%" PRIu64, value->bytes);
}

/* A column of the leaves that have something. */
static void put_column(FILE *out, const struct recording *r, const struct recording_view *v,
		       enum column column)
{
	static const char *const names[] = {"leaf", "bytes_of", "blocks_of", "variance_of"};
	bool is_first = true;

	fprintf(out, ",\n\"%s\":[", names[column]);
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes && !v->leaf[i].blocks)
			continue;
		if (!is_first)
			putc(',', out);
		is_first = false;
		if (column == COLUMN_LEAF)
			fprintf(out, "%zu", i);
		else
			put_member_of(out, r, &v->leaf[i], column);
	}
	putc(']', out);
}

static void put_intervals(FILE *out, const struct recording_view *v)
{
	if (v->quantity == VIEW_RANGE || v->quantity == VIEW_OLDER)
		fprintf(out, ",\"first\":%" PRIu32, v->first);
	if (v->quantity == VIEW_RANGE || v->quantity == VIEW_AT)
		fprintf(out, ",\"last\":%" PRIu32, v->last);
}

static void put_view(FILE *out, const struct recording *r, const struct recording_view *v,
		     const struct recording_question *q)
{
	static const char *const quantities[] = {
		[VIEW_PEAK] = "peak", [VIEW_AT] = "live", [VIEW_RANGE] = "growth",
		[VIEW_OLDER] = "older",
		[VIEW_TOTAL] = "allocated", [VIEW_TEMPORARY] = "temporary",
		[VIEW_LEAKED] = "leaked",
	};
	_cleanup_free_ char *text = recording_view_text(v, r, q);

	fprintf(out, ",\n\"view\":{\"quantity\":\"%s\"", quantities[v->quantity]);
	put_intervals(out, v);
	put_member(out, "text", text);
	put_member(out, "thread", q->thread);
	put_member(out, "match", q->match);
	fputs(",\"bytes\":", out);
	put_member_of(out, r, &v->sum, COLUMN_BYTES);
	fputs(",\"blocks\":", out);
	put_member_of(out, r, &v->sum, COLUMN_BLOCKS);
	if (r->interval) {
		fputs(",\"variance\":", out);
		put_member_of(out, r, &v->sum, COLUMN_VARIANCE);
	}
	for (enum column c = COLUMN_LEAF; c <= (r->interval ? COLUMN_VARIANCE : COLUMN_BLOCKS); c++)
		put_column(out, r, v, c);
	putc('}', out);
}

int recording_view_json(const struct recording *r, const struct recording_question *q, char **out,
			char **why_out)
{
	struct recording_view v;
	size_t size;

	if (!recording_question_is_given(q)) {
		*out = xstrdup("");
		return 0;
	}
	int rc = recording_view_init(&v, r, q, why_out);

	if (rc != 0)
		return rc;
	FILE *memory = open_memstream(out, &size);

	CHECK(memory);
	put_view(memory, r, &v, q);
	CHECK(!fclose(memory));
	recording_view_deinit(&v);
	return 0;
}
