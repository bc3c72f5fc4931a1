/* What recordings of a session are made from, with modules and functions looked up there. */
#ifndef PTMEM_SESSION_RECORDING_NAMES_H
#define PTMEM_SESSION_RECORDING_NAMES_H

#include "recording/recording_build.h"

struct recording_span;
struct session;

/*
 * For a recording of @span. @is_quick: functions from the symbol tables only, since the program is
 * waiting. @report: as session_report makes it; it must outlive the result.
 */
struct recording_input session_recording_input(struct session *s, const struct recording_span *span,
					       const struct report *report, bool is_quick);

#endif
