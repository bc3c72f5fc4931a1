/* Where messages go: --log-file, --log-fd. */
#ifndef PTMEM_LOG_FILE_H
#define PTMEM_LOG_FILE_H

#include "options.h"

/* Directs messages where @o says. 0, or -errno after a message on standard error. */
int log_file_open(const struct options *o);

#endif
