/* See object_bytes.h. */
#include "session/object_bytes.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/elf_file.h"
#include "session/malloc_module.h"
#include "tracee/state/module.h"

/* Whole pages of the file are mapped: what is before a segment on its first page is there, too. */
static const struct elf_segment *find_segment(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = file->segment_count; i-- > 0;) {
		const struct elf_segment *g = &file->segment[i];
		uint64_t before = g->vaddr % PAGE_SIZE_MIN;

		if (before <= g->offset && vaddr >= g->vaddr - before &&
		    vaddr - (g->vaddr - before) < g->filesz + before)
			return g;
	}
	return NULL;
}

static ssize_t read_segment(const struct elf_file *file, uint64_t vaddr, void *buf, size_t size)
{
	const struct elf_segment *g = find_segment(file, vaddr);

	if (!g)
		return -1;
	uint64_t rest = g->vaddr + g->filesz - vaddr, offset = g->offset + (vaddr - g->vaddr);

	size = MIN(size, rest);
	_cleanup_free_ uint8_t *bytes = elf_file_read(file, offset, size);

	if (!bytes)
		return -1;
	memcpy(buf, bytes, size);
	return (ssize_t)size;
}

ssize_t object_bytes_read(void *modules, taddr_t addr, void *buf, size_t size)
{
	uint64_t vaddr;
	const struct module *m = held_modules_find(modules, addr, &vaddr);

	return m ? read_segment(m->file, vaddr, buf, size) : -1;
}
