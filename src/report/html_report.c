/* See html_report.h. */
#include "report/html_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "output/html_page.h"
#include "output/outfile.h"
#include "recording/recording_json.h"
#include "report/diff_json.h"
#include "report/diff_pair.h"
#include "report/inspect_html.h"
#include "report/massif_json.h"
#include "report/recording_view_json.h"

static void put_json(FILE *out, const struct input *input, char *const more[2], bool is_diff)
{
	struct frame_match *match = is_diff ? diff_pair_match(input) : NULL;

	if (match)
		diff_json_write(out, input, more, match, NULL);
	else if (input->kind == INPUT_RECORDING)
		recording_json_write(out, input->recording, more[0]);
	else
		massif_json_write(out, input->massif, NULL);
	frame_match_free(match);
}

static void put_page(FILE *out, const struct input *input, char *const more[2], bool is_diff)
{
	_cleanup_free_ char *json = NULL;
	size_t size;
	FILE *memory = open_memstream(&json, &size);

	CHECK(memory);
	put_json(memory, input, more, is_diff);
	CHECK(!fclose(memory));
	html_page_write(out, json, size, false);
}

static int write_page(const struct report_request *r, const struct input *input,
		      char *const more[2])
{
	struct outfile out;
	int err = outfile_open(r->html, &out);

	if (!err) {
		if (input->kind == INPUT_INSPECT)
			inspect_html_write(out.file, input->inspect);
		else
			put_page(out.file, input, more, r->is_diff);
		err = outfile_commit(&out);
	}
	if (err)
		log_error("cannot write %s: %s", r->html, strerror(-err));
	return err ? EXIT_NOT_WRITTEN : 0;
}

int html_report_write(const struct report_request *r, const struct input *input)
{
	char *more[2] = {NULL, NULL}, *why = NULL;
	int status = 0;

	for (int i = 0; !why && input->kind == INPUT_RECORDING && i <= r->is_diff; i++) {
		if (recording_view_json(input[i].recording, &r->question, &more[i], &why) != 0) {
			log_error("%s: %s", r->path[i], why);
			status = EXIT_REFUSED;
		}
	}
	if (!status)
		status = write_page(r, input, more);
	free(more[0]);
	free(more[1]);
	free(why);
	return status;
}
