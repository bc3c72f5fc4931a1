/* There are no pads on this CPU yet: probes are breakpoints. */
#include <errno.h>

#include "arch/pad.h"

#include "arch/arch.h"

struct recorder_image arch_recorder_image(void)
{
	return (struct recorder_image){0};
}

int arch_make_pad(const struct pad_request *request, uint8_t *out, struct pad *pad_out,
		  const char **why_out)
{
	*why_out = "pads are not supported on this CPU";
	return -ENOTSUP;
}
