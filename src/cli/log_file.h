/* The destination of messages: --log-file, --log-fd. */
#ifndef PTMEM_LOG_FILE_H
#define PTMEM_LOG_FILE_H

#include "session/options.h"

/* Directs messages to the log of @o. 0, or -errno after a message on standard error. */
int log_file_open(const struct options *o);

#endif
