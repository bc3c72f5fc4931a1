/* See recording_output.h. */
#include "report/recording_output.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/json_write.h"
#include "base/log.h"
#include "recording/recording_json.h"

enum view_column { COLUMN_LEAF, COLUMN_BYTES, COLUMN_BLOCKS, COLUMN_VARIANCE, COLUMNS };

static void put_value(struct json_writer *w, const char *name, const struct recording *r,
		      const struct recording_value *value, enum view_column column)
{
	json_write_name(w, name);
	if (column == COLUMN_BLOCKS)
		recording_put_count(w->out, r, value->blocks);
	else if (column == COLUMN_VARIANCE)
		recording_put_variance(w->out, r, (uint64_t)fmin(value->variance, 0x1p63));
	else
		fprintf(w->out, "%" PRIu64, value->bytes);
}

/* A column of the leaves that have something. */
static void put_column(struct json_writer *w, const struct recording *r,
		       const struct recording_view *v, enum view_column column)
{
	static const char *const names[COLUMNS] = {"leaf", "bytes_of", "blocks_of", "variance_of"};

	json_write_open(json_write_line(w, 0), names[column], '[');
	for (size_t i = 0; i < recording_rows(r, RECORDING_LEAVES); i++) {
		if (!v->leaf[i].bytes && !v->leaf[i].blocks)
			continue;
		if (column == COLUMN_LEAF)
			json_write_number(w, NULL, i);
		else
			put_value(w, NULL, r, &v->leaf[i], column);
	}
	json_write_close(w, 1);
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
	static const char *const sums[COLUMNS] = {NULL, "bytes", "blocks", "variance"};
	_cleanup_free_ char *text = recording_view_text(v, r, q);
	int columns = r->interval ? COLUMNS : COLUMN_VARIANCE;
	struct json_writer w = {.out = out};

	putc(',', out); /* it is a further member of the whole */
	json_write_open(json_write_line(&w, 0), "view", '{');
	json_write_text(&w, "quantity", quantities[v->quantity]);
	if (v->quantity == VIEW_RANGE || v->quantity == VIEW_OLDER)
		json_write_number(&w, "first", v->first);
	if (v->quantity == VIEW_RANGE || v->quantity == VIEW_AT)
		json_write_number(&w, "last", v->last);
	json_write_text(&w, "text", text);
	json_write_text(&w, "thread", q->thread);
	json_write_text(&w, "match", q->match);
	for (int c = COLUMN_BYTES; c < columns; c++)
		put_value(&w, sums[c], r, &v->sum, (enum view_column)c);
	for (int c = COLUMN_LEAF; c < columns; c++)
		put_column(&w, r, v, (enum view_column)c);
	json_write_close(&w, 1);
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
