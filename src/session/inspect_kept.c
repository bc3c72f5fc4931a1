/* See inspect_kept.h. */
#include "session/inspect_kept.h"

#include <sys/mman.h>
#include <unistd.h>

#include "recording/recording.h"
#include "recording/recording_write.h"
#include "session/recording_inspect.h"
#include "session/session.h"

/* The server goes on without an inspection that it cannot have. */
static void write_file(struct inspect_kept *k)
{
	int fd = memfd_create("ptmem-inspection", MFD_CLOEXEC);

	k->file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!k->file && fd >= 0)
		close(fd);
	if (k->file && recording_write(k->file, k->tables) == 0)
		k->size = (uint64_t)ftello(k->file);
}

void inspect_kept_set(struct session *s, const struct inspect_title *t,
		      const struct inspect_report *r, const struct path_pins *pins,
		      uint64_t time_ms)
{
	struct inspect_kept *k = &s->end.inspection;
	uint32_t number = k->number + 1;

	if (!options_record(s->run->options))
		return;
	inspect_kept_deinit(k);
	*k = (struct inspect_kept){.tables = recording_inspect_new(t, r, pins, time_ms),
				   .number = number};
	if (s->run->options->listen.at)
		write_file(k);
}

void inspect_kept_deinit(struct inspect_kept *k)
{
	recording_free(k->tables);
	if (k->file)
		fclose(k->file);
}
