/* See html_report.h. */
#include "report/html_report.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "report/massif_json.h"
#include "recording/recording_json.h"

static void write_json(FILE *out, const struct input *input, const struct input *old)
{
	bool is_recording = input->kind == INPUT_RECORDING;

	if (is_recording && old)
		recording_json_write_diff(out, old->recording, input->recording);
	else if (is_recording)
		recording_json_write(out, input->recording);
	else if (!old)
		massif_json_write(out, input->massif);
	if (is_recording || !old)
		return;
	fputs("{\"format\":\"ptmem-report-diff\",\"version\":1,\n\"old\":", out);
	massif_json_write(out, old->massif);
	fputs(",\n\"new\":", out);
	massif_json_write(out, input->massif);
	fputs("}\n", out);
}

void html_report_write(FILE *out, const struct input *input, const struct input *old)
{
	_cleanup_free_ char *json = NULL;
	size_t size;
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	write_json(memory, input, old);
	CHECK(!fclose(memory));
	html_page_write(out, json, size);
}
