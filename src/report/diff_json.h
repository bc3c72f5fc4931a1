/* Two profiles with their matched frames, as JSON: doc/format.md defines it. */
#ifndef PTMEM_REPORT_DIFF_JSON_H
#define PTMEM_REPORT_DIFF_JSON_H

#include <stdio.h>

#include "report/diff_rows.h"
#include "report/frame_match.h"
#include "report/input.h"

/* The comparison as rows, for readers that do not compute it themselves. */
struct diff_json_rows {
	const char *view[2];     /* "live at the peak", "peak snapshot 7" */
	const struct diff_rows *rows;
};

/*
 * @input: by enum path_side, of one kind; @more: by enum path_side, further members of recordings
 * (recording_json.h); @rows may be NULL. The caller checks the stream for errors.
 */
void diff_json_write(FILE *out, const struct input *input, char *const more[2],
		     const struct frame_match *match, const struct diff_json_rows *rows);

#endif
