/* What is asked of a recording, and the answer, as a member of its JSON: doc/format.md. */
#ifndef PTMEM_REPORT_RECORDING_VIEW_JSON_H
#define PTMEM_REPORT_RECORDING_VIEW_JSON_H

#include "recording/recording_view.h"

/*
 * ",\n\"view\":{...}" in *@out, which the caller frees; "" if no view is requested. Fails as
 * recording_view_init.
 */
int recording_view_json(const struct recording *r, const struct recording_question *q, char **out,
			char **why_out);

#endif
