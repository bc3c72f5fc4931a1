/* Defines the globals. */
#include "base/globals.h"

#include <unistd.h>

struct globals globals = {
	.log = {.name = "ptmem", .fd = STDERR_FILENO, .max = LOG_INFO, .color = COLOR_AUTO},
};
