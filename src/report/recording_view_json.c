/* See recording_view_json.h. */
#include "report/recording_view_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "recording/recording_json.h"

static void put_member(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	recording_json_string(out, text);
}

/* A column of the leaves that have something. */
static void put_column(FILE *out, const struct recording_view *v, size_t leaves, const char *name)
{
	bool is_first = true;

	fprintf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < leaves; i++) {
		const struct recording_value *value = &v->leaf[i];

		if (!value->bytes && !value->blocks)
			continue;
		fprintf(out, "%s%" PRIu64, is_first ? "" : ",",
			*name == 'l' ? i :
			strcmp(name, "bytes_of") == 0 ? value->bytes : value->blocks);
		is_first = false;
	}
	putc(']', out);
}

static void put_intervals(FILE *out, const struct recording_view *v)
{
	if (v->quantity == VIEW_RANGE)
		fprintf(out, ",\"first\":%" PRIu32, v->first);
	if (v->quantity == VIEW_RANGE || v->quantity == VIEW_AT)
		fprintf(out, ",\"last\":%" PRIu32, v->last);
}

static void put_view(FILE *out, const struct recording *r, const struct recording_view *v,
		     const struct recording_question *q)
{
	static const char *const quantities[] = {
		[VIEW_PEAK] = "peak", [VIEW_AT] = "live", [VIEW_RANGE] = "growth",
		[VIEW_TOTAL] = "allocated", [VIEW_TEMPORARY] = "temporary",
		[VIEW_LEAKED] = "leaked",
	};
	_cleanup_free_ char *text = recording_view_text(v, r, q);
	size_t leaves = recording_rows(r, RECORDING_LEAVES);

	fprintf(out, ",\n\"view\":{\"quantity\":\"%s\"", quantities[v->quantity]);
	put_intervals(out, v);
	put_member(out, "text", text);
	put_member(out, "thread", q->thread);
	put_member(out, "match", q->match);
	fprintf(out, ",\"bytes\":%" PRIu64 ",\"blocks\":%" PRIu64, v->sum.bytes, v->sum.blocks);
	put_column(out, v, leaves, "leaf");
	put_column(out, v, leaves, "bytes_of");
	put_column(out, v, leaves, "blocks_of");
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
