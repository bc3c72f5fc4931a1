#include "report/picture.h"
#include <errno.h>
int picture_write(const struct input *input, const struct picture_options *options, char **why_out)
{
	return -ENOSYS;
}
