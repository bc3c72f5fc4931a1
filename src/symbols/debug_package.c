/*
 * In a package each unit has a part of each section. For a unit that is wanted, the sections of a
 * copy of the file are made those parts: then it is a .dwo file. The copies are private mappings
 * of one in memory, so that each takes a few pages.
 *
 *	.debug_cu_index    version, columns C, units U, slots S      4 bytes each
 *	                   S identifiers of units                    8 bytes each; 0 = free
 *	                   S rows, from 1 on                         4 bytes each
 *	                   C kinds of sections                       4 bytes each
 *	                   U times C offsets, U times C sizes        4 bytes each
 *
 * (DWARF 5, section 7.3.5. Version 2, of GNU's extension to DWARF 4, has other kinds.)
 */
#include "symbols/debug_package.h"

#include <dwarf.h>
#include <elf.h>
#include <gelf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/proc.h"

#define BYTES_MAX (UINT64_C(1) << 30) /* of a package */
#define UNITS_MAX 16384u              /* that are mapped: a process has 65,530 mappings */
#define SECTIONS_MAX 64u
#define HEAD_SIZE 16u

enum section_kind { INDEX = 0, INFO = 1, ABBREV = 3, LINE = 4, STR_OFFSETS = 6, KINDS = 9 };

/* A section that has a part for each unit; or an index, with which libdw takes it for no .dwo. */
struct package_section {
	size_t header;          /* offset of its header in the file */
	uint64_t offset, size;
	uint32_t kind;          /* INDEX = an index */
};

struct package_unit {
	uint64_t id;
	void *image;            /* owned: a mapping of all of the package */
	Elf *elf;               /* owned, as dwarf */
	Dwarf *dwarf;
	Dwarf_Die root;
	bool is_found;          /* root is valid */
};

struct debug_package {
	struct elf_file *file;  /* owned */
	int copy;               /* a file in memory; -1 = none */
	size_t size;
	const uint8_t *index;   /* in the file's data */
	uint32_t columns, units, slots;
	VEC(struct package_section) sections;
	VEC(struct package_unit) known; /* in the order in which they were wanted */
};

/* -- the file -- */

/* The kind is the same in both versions. False: the section stays as it is. */
static bool find_kind(const char *name, uint32_t *out)
{
	static const struct {
		const char *name;
		uint32_t kind;
	} kinds[] = {{".debug_cu_index", INDEX}, {".debug_tu_index", INDEX},
		     {".debug_info.dwo", INFO}, {".debug_abbrev.dwo", ABBREV},
		     {".debug_line.dwo", LINE}, {".debug_str_offsets.dwo", STR_OFFSETS}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(name, kinds[i].name) == 0) {
			*out = kinds[i].kind;
			return true;
		}
	return false;
}

static bool take_index(struct debug_package *p, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);

	if (!data || !data->d_buf || data->d_size < HEAD_SIZE)
		return false;
	const uint8_t *head = data->d_buf;
	uint64_t rest = data->d_size - HEAD_SIZE;

	p->columns = load_u32(head + 4);
	p->units = load_u32(head + 8);
	p->slots = load_u32(head + 12);
	p->index = head + HEAD_SIZE;
	return p->columns > 0 && p->columns < KINDS && p->slots > 0 &&
	       (p->slots & (p->slots - 1)) == 0 && p->units <= p->slots &&
	       p->slots <= rest / 12 &&
	       p->units <= (rest - 12 * (uint64_t)p->slots) / 4 / p->columns / 2 &&
	       12 * (uint64_t)p->slots + 4 * p->columns * (1 + 2 * (uint64_t)p->units) <= rest;
}

static bool take_sections(struct debug_package *p)
{
	bool has_index = false;
	GElf_Ehdr head;
	size_t names;

	if (!gelf_getehdr(p->file->elf, &head) || elf_getshdrstrndx(p->file->elf, &names) != 0 ||
	    head.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(p->file->elf, scn));) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(scn, &h) ?
					   elf_strptr(p->file->elf, names, h.sh_name) : NULL;
		uint32_t kind;
		uint64_t header = head.e_shoff + elf_ndxscn(scn) * sizeof(Elf64_Shdr);

		if (!name)
			continue;
		if (strcmp(name, ".debug_cu_index") == 0)
			has_index = take_index(p, scn);
		if (!find_kind(name, &kind) || p->sections.count == SECTIONS_MAX)
			continue;
		if (h.sh_flags & SHF_COMPRESSED || h.sh_offset > p->size ||
		    h.sh_size > p->size - h.sh_offset || header > p->size - sizeof(Elf64_Shdr))
			return false;
		*vec_add(&p->sections) = (struct package_section){
			header, h.sh_offset, h.sh_size, kind};
	}
	return has_index;
}

/* The file may change meanwhile: it is read once. */
static bool copy_file(struct debug_package *p)
{
	size_t size;
	const char *data = elf_rawfile(p->file->elf, &size);

	if (!data || size < sizeof(Elf64_Ehdr) || size > BYTES_MAX)
		return false;
	p->size = size;
	p->copy = memfd_create("ptmem-dwp", MFD_CLOEXEC);
	for (size_t at = 0; at < size;) {
		ssize_t n = p->copy < 0 ? -1 : write(p->copy, data + at, size - at);

		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static struct elf_file *open_beside(const struct elf_file *file)
{
	_cleanup_free_ char *path = xasprintf("%s.dwp", file->path);
	struct elf_file *found = NULL;

	for (int i = file->root ? 0 : 1; i < 2 && !found; i++) {
		struct root_dir *root = i == 0 ? file->root : NULL;
		int fd = root_dir_open(root, path);

		if (fd >= 0 && elf_file_open_fd(NULL, fd, path, root, &found) != 0)
			found = NULL;
	}
	return found;
}

struct debug_package *debug_package_open(const struct elf_file *file)
{
	struct elf_file *found = open_beside(file);

	if (!found)
		return NULL;
	struct debug_package *p = xcalloc(1, sizeof(*p));

	p->file = found;
	p->copy = -1;
	if (copy_file(p) && take_sections(p))
		return p;
	log_verbose("%s: the package of .dwo files cannot be read", found->path);
	debug_package_free(p);
	return NULL;
}

void debug_package_free(struct debug_package *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->known.count; i++) {
		struct package_unit *u = &p->known.data[i];

		if (u->dwarf)
			dwarf_end(u->dwarf);
		if (u->elf)
			elf_end(u->elf);
		if (u->image)
			munmap(u->image, p->size);
	}
	vec_deinit(&p->known);
	vec_deinit(&p->sections);
	if (p->copy >= 0)
		close(p->copy);
	elf_file_release(p->file);
	free(p);
}

/* -- units -- */

/* The row of the unit @id, from 1 on; 0 = none. */
static uint32_t find_row(const struct debug_package *p, uint64_t id)
{
	uint32_t mask = p->slots - 1, slot = (uint32_t)id & mask;
	uint32_t step = ((uint32_t)(id >> 32) & mask) | 1;

	for (uint32_t tries = 0; tries < p->slots; tries++, slot = (slot + step) & mask) {
		uint32_t row = load_u32(p->index + 8 * (uint64_t)p->slots + 4 * (uint64_t)slot);

		if (row == 0)
			return 0;
		if (load_u64(p->index + 8 * (uint64_t)slot) == id)
			return row <= p->units ? row : 0;
	}
	return 0;
}

/* Makes @s in @image the part that row @row has of it; one that it has no part of is empty. */
static bool cut(const struct debug_package *p, const struct package_section *s, uint32_t row,
		uint8_t *image)
{
	const uint8_t *kinds = p->index + 12 * (uint64_t)p->slots;
	const uint8_t *offsets = kinds + 4 * (uint64_t)p->columns;
	const uint8_t *sizes = offsets + 4 * (uint64_t)p->columns * p->units;
	uint64_t offset = 0, size = 0;

	if (s->kind == INDEX) { /* "" is the first of all names */
		memset(image + s->header + offsetof(Elf64_Shdr, sh_name), 0, sizeof(Elf64_Word));
		return true;
	}
	for (uint32_t i = 0; i < p->columns; i++) {
		uint64_t at = 4 * ((uint64_t)(row - 1) * p->columns + i);

		if (load_u32(kinds + 4 * (uint64_t)i) != s->kind)
			continue;
		offset = load_u32(offsets + at);
		size = load_u32(sizes + at);
	}
	if (offset > s->size || size > s->size - offset)
		return false;
	offset += s->offset;
	memcpy(image + s->header + offsetof(Elf64_Shdr, sh_offset), &offset, sizeof(offset));
	memcpy(image + s->header + offsetof(Elf64_Shdr, sh_size), &size, sizeof(size));
	return true;
}

/* A unit of its own, whatever else the part has. */
static bool take_root(struct package_unit *u)
{
	Dwarf_CU *cu = NULL;
	uint8_t type;

	return dwarf_get_units(u->dwarf, NULL, &cu, NULL, &type, &u->root, NULL) == 0 &&
	       u->root.addr && dwarf_tag(&u->root) == DW_TAG_compile_unit;
}

static bool open_unit(struct debug_package *p, struct package_unit *u)
{
	uint32_t row = find_row(p, u->id);
	void *image = row ? mmap(NULL, p->size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_NORESERVE, p->copy, 0) : MAP_FAILED;

	if (image == MAP_FAILED)
		return false;
	u->image = image;
	for (size_t i = 0; i < p->sections.count; i++)
		if (!cut(p, &p->sections.data[i], row, image))
			return false;
	u->elf = elf_memory(image, p->size);
	u->dwarf = u->elf ? dwarf_begin_elf(u->elf, DWARF_C_READ, NULL) : NULL;
	return u->dwarf && take_root(u);
}

bool debug_package_find(struct debug_package *p, Dwarf_Die *cu_die, Dwarf_Die *split_out)
{
	uint8_t type = 0;
	uint64_t id = 0;
	size_t i = 0;

	if (dwarf_cu_info(cu_die->cu, NULL, &type, NULL, NULL, &id, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return false;
	while (i < p->known.count && p->known.data[i].id != id)
		i++;
	if (i == UNITS_MAX)
		return false;
	if (i == p->known.count) {
		struct package_unit *u = vec_add(&p->known);

		*u = (struct package_unit){.id = id};
		u->is_found = open_unit(p, u);
	}
	*split_out = p->known.data[i].root;
	return p->known.data[i].is_found;
}
