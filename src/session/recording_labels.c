/* They are read when the session begins: at the end the process may be gone. */
#include "session/recording_labels.h"

#include "base/cgroup.h"
#include "recording/recording.h"
#include "session/session.h"

void recording_labels_fill(const struct session *s, struct recording *out)
{
	const struct my_code *my_code = &s->run->options->names.my_code;
	char container[CONTAINER_ID_SIZE] = "";

	for (size_t i = 0; i < my_code->rule.count; i++)
		recording_set_meta(out, MY_CODE_META, my_code->rule.data[i]);
	if (s->process.name)
		recording_set_meta(out, "name", s->process.name);
	if (!s->process.cgroup)
		return;
	cgroup_container(s->process.cgroup, container);
	recording_set_meta(out, "cgroup", s->process.cgroup);
	if (*container)
		recording_set_meta(out, "container", container);
}
