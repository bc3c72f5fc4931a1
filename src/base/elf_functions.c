/*
 * Merges the starts and ends of functions from three sources into one sorted list. The table of
 * .eh_frame_hdr is read only in the form that linkers write: sorted pairs of 32-bit distances from
 * the section's start.
 */
#include "base/elf_functions.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_SIZE 12       /* version, three encodings, pointer to .eh_frame, count */
#define COUNT_UDATA4 0x03    /* DW_EH_PE_udata4 */
#define TABLE_DATAREL 0x3b   /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define FRAME_PCREL 0x1b     /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */
#define FDE_START 8          /* after its length and the pointer to its CIE */

/* @f->end: 0 = unknown; equal to the start: a gap begins there. */
static void add_kind(struct elf_file *file, struct elf_functions *out, struct elf_function f)
{
	uint64_t start = f.start, end = f.end;
	const struct elf_segment *seg = elf_file_segment(file, start);

	if (!seg || !seg->is_exec || start - seg->vaddr >= seg->filesz)
		return;
	if (end > seg->vaddr + seg->filesz || end < start)
		f.end = 0;
	*vec_add(&out->list) = f;
}

static void add(struct elf_file *file, struct elf_functions *out, uint64_t start, uint64_t end)
{
	add_kind(file, out, (struct elf_function){start, end, ELF_FUNCTION});
}

/* The bytes of a segment; owned. */
struct bytes {
	const struct elf_segment *seg;
	uint8_t *data;
};

static const uint8_t *bytes_at(const struct bytes *b, uint64_t vaddr, uint64_t size)
{
	uint64_t at = vaddr - b->seg->vaddr;

	return at <= b->seg->filesz && size <= b->seg->filesz - at ? b->data + at : NULL;
}

/* The size of the function at @start, from the FDE at @fde; 0 if it cannot be read. */
static uint32_t fde_length(const struct bytes *b, uint64_t fde, uint64_t start)
{
	uint64_t at = fde + FDE_START;
	uint32_t word[2];
	const uint8_t *p = bytes_at(b, at, sizeof(word));

	if (!p)
		return 0;
	memcpy(word, p, sizeof(word));
	return at + (uint64_t)(int64_t)(int32_t)word[0] == start ? word[1] : 0;
}

static void read_table(struct elf_file *file, struct elf_functions *out, const struct bytes *b,
		       uint64_t vaddr)
{
	const uint8_t *p = bytes_at(b, vaddr, HEADER_SIZE);
	uint32_t count;

	if (!p || p[0] != 1 || p[1] != FRAME_PCREL || p[2] != COUNT_UDATA4 || p[3] != TABLE_DATAREL)
		return;
	memcpy(&count, p + HEADER_SIZE - sizeof(count), sizeof(count));
	for (uint64_t i = 0; i < count; i++) {
		int32_t entry[2];
		p = bytes_at(b, vaddr + HEADER_SIZE + i * sizeof(entry), sizeof(entry));
		if (!p)
			return;
		memcpy(entry, p, sizeof(entry));
		uint64_t start = vaddr + (uint64_t)(int64_t)entry[0];
		uint32_t length = fde_length(b, vaddr + (uint64_t)(int64_t)entry[1], start);
		add(file, out, start, length ? start + length : 0);
	}
}

/* Linkers place header and frames in the same segment. */
static void add_frames(struct elf_file *file, struct elf_functions *out)
{
	size_t segments = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(file->elf, &segments) != 0)
		return;
	for (size_t i = 0; i < segments; i++) {
		if (!gelf_getphdr(file->elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		struct bytes b = {.seg = elf_file_segment(file, ph.p_vaddr)};
		b.data = b.seg ? elf_file_read(file, b.seg->offset, b.seg->filesz) : NULL;
		if (b.data)
			read_table(file, out, &b, ph.p_vaddr);
		free(b.data);
	}
}

struct search {
	struct elf_file *file;
	struct elf_functions *out;
};

static int add_symbol(void *ctx, const struct elf_symbol *sym)
{
	struct search *search = ctx;

	if (sym->is_defined && (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC))
		add(search->file, search->out, sym->vaddr, sym->size ? sym->vaddr + sym->size : 0);
	return 0;
}

/*
 * Adds gaps: parts of a code section that no symbol describes (.plt, .init). Without a section
 * table all of it may be code.
 */
static void add_sections(struct elf_file *file, struct elf_functions *out)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	bool has_any = false;

	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) || !(header.sh_flags & SHF_ALLOC))
			continue;
		bool is_code = header.sh_flags & SHF_EXECINSTR;
		has_any |= is_code;
		add_kind(file, out,
			 (struct elf_function){header.sh_addr, is_code ? header.sh_addr : 0,
					       is_code ? ELF_GAP : ELF_NO_CODE});
	}
	for (size_t i = 0; i < file->segment_count && has_any; i++)
		add_kind(file, out, (struct elf_function){file->segment[i].vaddr, 0, ELF_NO_CODE});
}

static int compare(const void *a, const void *b)
{
	const struct elf_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind > y->kind ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/*
 * If several functions have the same start, the longest is kept. Each ends where the next begins,
 * at the latest.
 */
static void lay_out(struct elf_file *file, struct elf_functions *out)
{
	struct elf_functions all = *out;

	*out = (struct elf_functions){0};
	for (size_t i = 0; i < all.list.count; i++) {
		struct elf_function f = all.list.data[i];
		const struct elf_segment *seg = elf_file_segment(file, f.start);
		uint64_t next = seg->vaddr + seg->filesz;

		if (i + 1 < all.list.count && all.list.data[i + 1].start < next)
			next = all.list.data[i + 1].start;
		if (next == f.start)
			continue;
		if (f.end == 0 || f.end > next)
			f.end = next;
		if (f.end > f.start)
			*vec_add(&out->list) = f;
		if (f.end < next)
			*vec_add(&out->list) = (struct elf_function){f.end, next, ELF_GAP};
	}
	vec_deinit(&all.list);
}

void elf_functions_find(struct elf_file *file, struct elf_functions *out)
{
	struct search search = {file, out};

	*out = (struct elf_functions){0};
	add_frames(file, out);
	add_sections(file, out);
	elf_file_each_symbol(file, add_symbol, &search);
	if (out->list.count > 1)
		qsort(out->list.data, out->list.count, sizeof(*out->list.data), compare);
	lay_out(file, out);
}
