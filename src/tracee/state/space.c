/*
 * The lifetime of an address space. Its contents: module.c, trap_table.c, space_memory.c;
 * access to its memory: space_memory.c.
 */
#include "tracee/state/space.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "tracee/os/maps.h"
#include "tracee/os/own_settings.h"
#include "tracee/state/journal.h"
#include "tracee/state/module.h"

static void open_files(struct address_space *s, pid_t reader)
{
	s->processes.reader = reader;
	s->files.memory = limit_keep(space_open_memory(reader));
	s->files.maps = limit_keep(maps_open(reader));
	if (s->files.memory < 0)
		image_read(reader, &s->image.id); /* space_write compares it */
}

struct address_space *space_new(struct registry *registry, pid_t pid)
{
	struct address_space *s = xcalloc(1, sizeof(*s));
	s->registry = registry;
	s->id = ++registry->last_space_id;
	s->processes.users = 1;
	s->processes.pid = pid;
	s->processes.exit_status = -1;
	s->image.is_own = true;
	open_files(s, pid);
	return s;
}

static void close_files(struct address_space *s)
{
	if (s->files.memory >= 0)
		close(s->files.memory);
	if (s->files.maps >= 0)
		close(s->files.maps);
}

void space_set_reader(struct address_space *s, pid_t tid)
{
	close_files(s);
	open_files(s, tid);
}

int space_follow_image(struct address_space *s, bool *is_other_out)
{
	uint64_t image = 0;
	s->processes.reader = proc_find_reader(s->processes.pid);
	int rc = image_read(s->processes.reader, &image);
	if (rc != 0)
		return rc;
	int fd = space_open_memory(s->processes.reader);
	if (fd < 0)
		return fd;
	close_files(s);
	s->files.memory = limit_keep(fd);
	s->files.maps = limit_keep(maps_open(s->processes.reader));
	*is_other_out = image != s->image.id;
	if (image != s->image.id) {
		module_list_clear(&s->modules);
		s->syscalls.insn = 0;
	}
	s->image.id = image;
	return 0;
}

struct address_space *space_fork(const struct address_space *parent, pid_t child)
{
	struct address_space *s = space_new(parent->registry, child);
	s->image.is_own = false;
	s->image.has_earlier_blocks = parent->image.has_earlier_blocks;
	s->image.has_variable = parent->image.has_variable;
	module_list_copy(&s->modules, &parent->modules);
	s->traps = trap_table_clone(&parent->traps);
	s->own = own_memory_clone(&parent->own);
	s->syscalls = parent->syscalls;
	s->unwind_through = parent->unwind_through;
	s->watch.is_loading = parent->watch.is_loading;
	s->watch.is_ready = parent->watch.is_ready;
	s->watch.is_profiled = parent->watch.is_profiled;
	s->watch.guess = parent->watch.guess;
	s->watch.is_confirmed = parent->watch.is_confirmed;
	s->watch.is_disproved = parent->watch.is_disproved;
	s->watch.functions = parent->watch.functions;
	return s;
}

void space_note_stop(struct address_space *s, uint64_t ns)
{
	s->pauses.stopped_ns += ns;
	s->pauses.longest_ns = MAX(s->pauses.longest_ns, ns);
}

void space_note_trap(struct address_space *s, uint64_t ns)
{
	s->pauses.trap_ns += ns;
	s->pauses.longest_trap_ns = MAX(s->pauses.longest_trap_ns, ns);
}

void space_free(struct address_space *s)
{
	journal_end(s);
	module_list_deinit(&s->modules);
	trap_table_deinit(&s->traps);
	own_memory_deinit(&s->own);
	close_files(s);
	free(s);
}
