/*
 * Names mappings as /proc/PID/maps does: files from NT_FILE, the stack and the vdso from the
 * auxiliary vector, the heap from its position after the program's data.
 */
#include "inspect/core_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define PIECE ((uint64_t)1 << 20)
#define VSYSCALL UINT64_C(0xffffffffff600000)
/* The kernel places the heap at a random offset of up to this many bytes after the program. */
#define HEAP_REACH (UINT64_C(1) << 30)

/* -- mappings -- */

static const struct map *find_file(const struct core_file *c, taddr_t addr)
{
	for (size_t i = 0; i < c->files.count; i++)
		if (addr >= c->files.data[i].start && addr < c->files.data[i].end)
			return &c->files.data[i];
	return NULL;
}

static const char *name_part(const struct core_file *c, const struct core_part *p)
{
	if (c->vdso >= p->start && c->vdso < p->end)
		return "[vdso]";
	if (c->on_stack >= p->start && c->on_stack < p->end)
		return "[stack]";
	return p->start == VSYSCALL ? "[vsyscall]" : "";
}

static void add_part(const struct core_file *c, const struct core_part *p, struct maps *out)
{
	const struct map *file = find_file(c, p->start);
	struct map m = {.start = p->start, .end = p->end, .is_read = p->flags & PF_R,
			.is_write = p->flags & PF_W, .is_exec = p->flags & PF_X,
			.path = xstrdup(file ? file->path : name_part(c, p))};

	if (file) {
		m.offset = file->offset + (m.start - file->start);
		m.is_deleted = file->is_deleted;
		m.is_shared = map_has_no_file(file);
	}
	*vec_add(&out->list) = m;
}

static bool has_part(const struct core_file *c, const struct map *m)
{
	size_t i = vec_search(&c->parts, e, e->end <= m->start);

	return i < c->parts.count && c->parts.data[i].start < m->end;
}

/* Mapped files of which gcore dumped nothing. */
static void add_other_files(const struct core_file *c, struct maps *out, struct core_sums *sums)
{
	taddr_t end = 0;

	for (size_t i = 0; i < c->files.count; i++) {
		struct map m = c->files.data[i];

		if (m.start < end || has_part(c, &m))
			continue;
		end = m.end;
		m.path = xstrdup(m.path);
		*vec_add(&out->list) = m;
		sums->left_out += m.end - m.start;
	}
}

static void name_as_heap(struct map *m)
{
	free(m->path);
	m->path = xstrdup("[heap]");
}

/*
 * The program's file is listed first. The heap is the unnamed memory after it, or before it if the
 * kernel took a static position-independent program for a dynamic linker.
 */
static void name_heap(struct maps *maps)
{
	const char *program = NULL;
	taddr_t end = 0;

	if (maps->list.count > 0 && !*maps->list.data[0].path && maps->list.data[0].is_write) {
		name_as_heap(&maps->list.data[0]);
		return;
	}

	for (size_t i = 0; i < maps->list.count; i++) {
		struct map *m = &maps->list.data[i];

		if (!program && *m->path == '/')
			program = m->path;
		if (program && strcmp(m->path, program) == 0) {
			end = m->end;
		} else if (program && !*m->path && m->start == end) {
			end = m->end; /* .bss */
		} else if (program) {
			if (!*m->path && m->is_write && m->start - end < HEAP_REACH)
				name_as_heap(m);
			return;
		}
	}
}

static void take_maps(const struct core_file *c, struct maps *out, struct core_sums *sums)
{
	for (size_t i = 0; i < c->parts.count; i++)
		add_part(c, &c->parts.data[i], out);
	add_other_files(c, out, sums);
	vec_sort(&out->list, taddr_compare);
	name_heap(out);
}

/* -- pages -- */

struct core_reader {
	const struct core_file *file;
	uint8_t *buffer;        /* PIECE */
	struct resident *pages;
	struct core_sums *sums;
};

static void add_page(struct core_reader *r, size_t first, taddr_t addr, uint32_t flags)
{
	struct resident *p = r->pages;
	struct page_run *last = p->list.count > first ? &p->list.data[p->list.count - 1] : NULL;

	if (last && last->end == addr)
		last->end += PAGE_SIZE_MIN;
	else
		*vec_add(&p->list) = (struct page_run){addr, addr + PAGE_SIZE_MIN, flags};
	p->resident += PAGE_SIZE_MIN;
}

/* The offset at or after @offset where the file has data again: holes read as zeros. */
static uint64_t skip_hole(const struct core_file *c, uint64_t offset, uint64_t end)
{
	off_t at = lseek(c->fd, (off_t)offset, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? end : offset;
	return MIN(ROUND_DOWN((uint64_t)at - offset, (uint64_t)PAGE_SIZE_MIN) + offset, end);
}

static int read_part(struct core_reader *r, const struct core_part *p)
{
	const struct map *file = find_file(r->file, p->start);
	uint32_t flags = PAGE_RESIDENT | (file && !(p->flags & PF_W) ? PAGE_OF_FILE : 0);
	uint64_t end = p->offset + p->filled, at = p->offset;
	size_t first = r->pages->list.count;

	while ((at = skip_hole(r->file, at, end)) < end) {
		size_t size = MIN(end - at, PIECE);
		ssize_t got = pread(r->file->fd, r->buffer, size, (off_t)at);

		if (got != (ssize_t)size)
			return got < 0 ? -errno : -EIO;
		for (size_t i = 0; i < size; i += PAGE_SIZE_MIN)
			if (r->buffer[i] ||
			    memcmp(r->buffer + i, r->buffer + i + 1, PAGE_SIZE_MIN - 1) != 0)
				add_page(r, first, p->start + (at - p->offset) + i, flags);
		at += size;
	}
	r->sums->bytes += p->filled;
	r->sums->left_out += p->end - p->start - p->filled;
	return 0;
}

int core_memory_read(const struct core_file *c, struct resident *pages_out,
		     struct core_sums *sums_out)
{
	_cleanup_free_ uint8_t *buffer = xmalloc(PIECE);
	struct core_reader r = {c, buffer, pages_out, sums_out};

	*pages_out = (struct resident){0};
	*sums_out = (struct core_sums){0};
	take_maps(c, &pages_out->maps, sums_out);
	for (size_t i = 0; i < c->parts.count; i++) {
		int rc = read_part(&r, &c->parts.data[i]);

		if (rc != 0) {
			resident_deinit(pages_out);
			return rc;
		}
	}
	sums_out->zeros = sums_out->bytes - pages_out->resident;
	return 0;
}

/* -- the source -- */

static ssize_t read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	return core_file_read(ctx, addr, buf, size);
}

struct memory_source core_memory_source(const struct core_file *c)
{
	return (struct memory_source){
		.read = read_memory, .ctx = (void *)(uintptr_t)c};
}
