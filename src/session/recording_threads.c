/* See recording_threads.h. */
#include "session/recording_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/proc.h"

void recording_threads_deinit(struct recording_threads *t)
{
	vec_deinit(&t->name);
}

/* Whether this is new. */
static bool set_name(struct recording_threads *t, const struct thread_name *n)
{
	uint32_t key = recording_string(t->known, n->key);
	uint32_t name = recording_string(t->known, n->name);

	while (t->name.count <= key)
		*vec_add(&t->name) = 0;
	if (t->name.data[key] == name)
		return false;
	t->name.data[key] = name;
	return true;
}

bool recording_threads_read(struct recording_threads *t, uint32_t thread, struct thread_name *out)
{
	_cleanup_free_ char *file = xasprintf("task/%u/comm", thread);
	_cleanup_fclose_ FILE *f = proc_open(t->pid, file);

	if (!f || !fgets(out->name, sizeof(out->name), f))
		return false;
	out->name[strcspn(out->name, "\n")] = '\0';
	snprintf(out->key, sizeof(out->key), "thread.%" PRIu32, thread);
	return *out->name && set_name(t, out);
}
