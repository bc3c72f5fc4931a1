/*
 * All processes have the same vdso, unless one was restored from another kernel's checkpoint, or
 * changed its own. To read a page of it makes the page resident in that process. So ptmem copies
 * its own, and compares that with the pages that the process has used.
 */
#include "tracee/state/vdso.h"

#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "tracee/os/maps.h"
#include "tracee/os/pagemap.h"
#include "tracee/state/space.h"
#include "tracee/state/space_memory.h"

/* Copies ptmem's own vdso; false if it does not have @size bytes. */
static bool copy_own(uint8_t *image, size_t size)
{
	taddr_t start = getauxval(AT_SYSINFO_EHDR);
	struct maps maps = {0};
	const struct map *m = NULL;

	if (start && maps_read(getpid(), &maps) == 0)
		m = maps_find(&maps, start);
	bool fits = m && m->start == start && m->end - start == size;

	if (fits)
		memcpy(image, (const void *)(uintptr_t)start, size);
	maps_deinit(&maps);
	return fits;
}

struct comparison {
	const struct address_space *space;
	const uint8_t *image;
	taddr_t start; /* of the vdso */
	bool is_same;
};

static void compare(void *ctx, taddr_t start, taddr_t end)
{
	struct comparison *c = ctx;
	uint8_t page[PAGE_SIZE_MIN];

	for (; start < end && c->is_same; start += sizeof(page))
		c->is_same = space_read(c->space, start, page, sizeof(page)) == 0 &&
			     memcmp(page, c->image + (start - c->start), sizeof(page)) == 0;
}

int vdso_read(const struct address_space *s, const struct map *map, uint8_t *image)
{
	size_t size = map->end - map->start;
	struct comparison c = {
		.space = s, .image = image, .start = map->start, .is_same = copy_own(image, size)};
	struct present present;

	if (c.is_same) {
		present_open(s->processes.reader, true, &present);
		present_find(&present, map->start, map->end, compare, &c);
		present_close(&present);
	}
	return c.is_same ? 0 : space_read(s, map->start, image, size);
}
