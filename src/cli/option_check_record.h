/* Checks --record, --html, --listen and what goes with them, and --when. */
#ifndef PTMEM_OPTION_CHECK_RECORD_H
#define PTMEM_OPTION_CHECK_RECORD_H

#include "session/options.h"

/* 0, or -EINVAL after a message. */
int option_check_record(const struct options *o);

#endif
