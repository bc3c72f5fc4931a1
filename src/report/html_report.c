/* See html_report.h. */
#include "report/html_report.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "report/massif_json.h"
#include "recording/recording_json.h"
#include "report/recording_view_json.h"

static int write_recordings(FILE *out, const struct input *input, const struct input *old,
			    const struct recording_question *q, char **why_out)
{
	_cleanup_free_ char *before = NULL, *now = NULL;
	int rc = recording_view_json(input->recording, q, &now, why_out);

	if (rc == 0 && old)
		rc = recording_view_json(old->recording, q, &before, why_out);
	if (rc == 0 && old)
		recording_json_write_diff(
			out, (const struct recording *[]){old->recording, input->recording},
			(const char *[]){before, now});
	else if (rc == 0)
		recording_json_write(out, input->recording, now);
	return rc;
}

static void write_massif(FILE *out, const struct input *input, const struct input *old)
{
	if (!old) {
		massif_json_write(out, input->massif);
		return;
	}
	fputs("{\"format\":\"ptmem-report-diff\",\"version\":1,\n\"old\":", out);
	massif_json_write(out, old->massif);
	fputs(",\n\"new\":", out);
	massif_json_write(out, input->massif);
	fputs("}\n", out);
}

int html_report_write(FILE *out, const struct input *input, const struct input *old,
		      const struct recording_question *q, char **why_out)
{
	_cleanup_free_ char *json = NULL;
	size_t size;
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	int rc = 0;

	if (input->kind == INPUT_RECORDING)
		rc = write_recordings(memory, input, old, q, why_out);
	else
		write_massif(memory, input, old);
	CHECK(!fclose(memory));
	if (rc == 0)
		html_page_write(out, json, size);
	return rc;
}
