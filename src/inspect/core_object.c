/* Reads program headers and the build-id note. See core_object.h. */
#include "inspect/core_object.h"

#include <elf.h>
#include <string.h>

#include "inspect/core_notes.h"

#define HEADERS_MAX 64u
#define NOTES_MAX 4096u

static bool take_id(void *ctx, uint32_t type, const uint8_t *desc, size_t size)
{
	struct core_object *o = ctx;

	if (type != NT_GNU_BUILD_ID || size > sizeof(o->build_id))
		return true;
	memcpy(o->build_id, desc, size);
	o->build_id_size = size;
	return false;
}

static void read_notes(const struct core_file *c, taddr_t addr, uint64_t size,
		       struct core_object *o)
{
	uint8_t notes[NOTES_MAX];

	if (size <= sizeof(notes) && core_file_read_all(c, addr, notes, size))
		core_notes_each(notes, size, take_id, o);
}

bool core_object_read(const struct core_file *c, taddr_t start, struct core_object *out)
{
	Elf64_Ehdr h;
	Elf64_Phdr list[HEADERS_MAX];
	struct core_object o = {0};
	const Elf64_Phdr *first = NULL;

	if (!core_file_read_all(c, start, &h, sizeof(h)) ||
	    memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_machine != arch_native->elf_machine ||
	    h.e_phentsize != sizeof(*list) || h.e_phnum > ARRAY_SIZE(list) ||
	    !core_file_read_all(c, start + h.e_phoff, list, h.e_phnum * sizeof(*list)))
		return false;
	for (size_t i = 0; i < h.e_phnum && !first; i++)
		first = list[i].p_type == PT_LOAD ? &list[i] : NULL;
	if (!first)
		return false;
	o.bias = start - ROUND_DOWN(first->p_vaddr - first->p_offset, (taddr_t)PAGE_SIZE_MIN);
	for (size_t i = 0; i < h.e_phnum; i++) {
		taddr_t at = o.bias + list[i].p_vaddr, end = at + list[i].p_memsz;

		if (list[i].p_type == PT_LOAD && at < end && o.segments < ARRAY_SIZE(o.segment)) {
			o.segment[o.segments].start = at;
			o.segment[o.segments].is_exec = list[i].p_flags & PF_X;
			o.segment[o.segments++].end = end;
		} else if (list[i].p_type == PT_NOTE && o.build_id_size == 0) {
			read_notes(c, at, list[i].p_filesz, &o);
		}
	}
	*out = o;
	return true;
}
