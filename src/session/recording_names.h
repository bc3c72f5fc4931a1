/* Callbacks with which recordings look up modules and functions of a session. */
#ifndef PTMEM_SESSION_RECORDING_NAMES_H
#define PTMEM_SESSION_RECORDING_NAMES_H

#include "recording/recording_build.h"

struct session;

/* @is_quick: functions from the symbol tables only, since the program is waiting. */
struct recording_names session_recording_names(struct session *s, bool is_quick);

#endif
