/*
 * A program may unmap mappings that it does not know: sandboxes and checkpointers go through
 * /proc/self/maps. Of the memory that pads share with ptmem nothing is lost, since ptmem has mapped
 * it, too: it is mapped again at the same address.
 *
 * The target has no descriptor of the file any more and cannot be given one. So it creates a new
 * file, which gets the old one's contents and replaces it here, too, at the same address.
 */
#include "tracee/pads/pad_restore.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracee/inject/lost_code.h"
#include "tracee/os/maps.h"
#include "tracee/pads/pad_mapping.h"
#include "tracee/pads/pads_internal.h"
#include "tracee/state/thread.h"

/* A file of the memory, and where it is mapped. */
struct part {
	taddr_t start, end;
	int fd;
};

/* The main mapping (0), and chunks of slots with mappings of their own. */
static struct part get_part(const struct pad_memory *m, uint32_t index)
{
	const struct pad_chunk *c = &m->slots.chunk[index];
	if (index == 0)
		return (struct part){m->target, m->target + m->layout.file_size, m->fd};
	return (struct part){c->target, c->target + c->size, c->fd};
}

static enum lost_state part_state(const struct part *part, const struct maps *maps)
{
	uint64_t left = part->end - part->start;
	struct stat st;
	if (fstat(part->fd, &st) != 0)
		return LOST_REPLACED;
	for (size_t i = 0; i < maps->list.count; i++) {
		const struct map *m = &maps->list.data[i];
		if (m->start >= part->end || m->end <= part->start)
			continue;
		if (!m->is_shared || m->ino != st.st_ino || m->dev != st.st_dev)
			return LOST_REPLACED;
		if (m->is_read && m->is_write)
			left -= MIN(m->end, part->end) - MAX(m->start, part->start);
	}
	return left == 0 ? LOST_NOT : LOST_GONE;
}

/* NULL: none, or it is the program's now (pad_retreat.c). */
static const struct pad_memory *get_memory(const struct address_space *s)
{
	return s->pads && s->own.shared ? &s->pads->memory : NULL;
}

bool pads_share_memory_at(const struct address_space *s, taddr_t addr)
{
	const struct pad_memory *m = get_memory(s);
	for (uint32_t i = 0; m && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		if (addr >= part.start && addr < part.end)
			return true;
	}
	return false;
}

enum lost_state pads_memory_state(const struct address_space *s, const struct maps *maps)
{
	const struct pad_memory *m = get_memory(s);
	enum lost_state worst = LOST_NOT;
	for (uint32_t i = 0; m && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		enum lost_state state = part_state(&part, maps);
		worst = MAX(worst, state);
	}
	return worst;
}

static int restore_part(struct target *t, struct thread *th, uint32_t index)
{
	struct pad_memory *m = &th->process->space->pads->memory;
	int own, fd = pads_open_file(t, th, &own);
	if (fd < 0)
		return fd;
	int rc = pad_memory_replace(m, index, own);
	if (rc != 0)
		close(own);
	else if (index == 0)
		rc = pads_map_over(t, th, fd, m, m->target);
	else
		rc = pads_map_chunk_over(t, th, fd, &m->slots.chunk[index]);
	pads_close_file(t, th, fd);
	return rc;
}

int pads_restore_memory(struct target *t, struct thread *th, const struct maps *maps,
			bool *any_out)
{
	const struct address_space *s = th->process->space;
	const struct pad_memory *m = get_memory(s);
	int rc = 0;
	if (pads_memory_state(s, maps) == LOST_REPLACED)
		return -EEXIST;
	for (uint32_t i = 0; m && rc == 0 && i < m->slots.chunk_count; i++) {
		struct part part = get_part(m, i);
		if (part_state(&part, maps) == LOST_NOT)
			continue;
		rc = restore_part(t, th, i);
		*any_out |= rc == 0;
	}
	return rc;
}
