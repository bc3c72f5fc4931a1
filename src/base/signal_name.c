/* See signal_name.h. */
#include "base/signal_name.h"

#include <stdio.h>
#include <string.h>

const char *signal_name(int number, char out[static SIGNAL_NAME_SIZE])
{
	const char *name = sigabbrev_np(number);

	if (name)
		snprintf(out, SIGNAL_NAME_SIZE, "SIG%s", name);
	else
		snprintf(out, SIGNAL_NAME_SIZE, "signal %d", number);
	return out;
}
