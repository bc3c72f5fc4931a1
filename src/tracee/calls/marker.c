/*
 * Finds markers in files, and parses their notes. Files are untrusted: invalid entries are
 * skipped.
 */
#include "tracee/calls/marker.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tracee/state/module.h"

#define NOTE_PROBE 3 /* the type of a note, version 3 of the format */
#define CHUNK (64u << 10) /* of a larger buffer each page would be new for each file */

/* -- client requests -- */

void marker_scan(const struct arch *arch, const uint8_t *data, size_t size,
		 void (*fn)(void *ctx, size_t offset), void *ctx)
{
	const uint8_t *at = data, *end = data + size;
	while ((at = memmem(at, (size_t)(end - at), arch->marker, arch->marker_size))) {
		fn(ctx, (size_t)(at - data));
		at += arch->marker_size;
	}
}

struct text_scan {
	struct marker_list *out;
	uint64_t vaddr; /* offset of the chunk's first byte */
};

static void add_request(void *ctx, size_t offset)
{
	struct text_scan *scan = ctx;
	*vec_add(&scan->out->list) =
		(struct marker){.vaddr = scan->vaddr + offset, .kind = MARKER_REQUEST};
}

/* Chunks overlap by less than a marker, so each is found once. */
static void scan_segment(const struct elf_file *file, const struct arch *arch,
			 const struct elf_segment *seg, struct marker_list *out)
{
	size_t overlap = arch->marker_size - 1u;
	_cleanup_free_ uint8_t *buf = xmalloc(CHUNK);
	for (uint64_t done = 0; done < seg->filesz; done += CHUNK - overlap) {
		size_t want = MIN(seg->filesz - done, (uint64_t)CHUNK);
		ssize_t n = pread(file->fd, buf, want, (off_t)(seg->offset + done));
		if (n <= 0)
			return;
		struct text_scan scan = {out, seg->vaddr + done};
		marker_scan(arch, buf, (size_t)n, add_request, &scan);
	}
}

/* -- notes -- */

/* The zero-terminated text at *@at of @size bytes; advances *@at. NULL if it is not terminated. */
static const char *take_text(const uint8_t *desc, size_t size, size_t *at)
{
	const char *text = (const char *)desc + *at;
	const uint8_t *zero = *at < size ? memchr(desc + *at, 0, size - *at) : NULL;
	if (!zero)
		return NULL;
	*at = (size_t)(zero - desc) + 1;
	return text;
}

static bool find_kind(const char *provider, const char *name, uint8_t *out)
{
	if (strcmp(provider, "ptmem") != 0 && strcmp(provider, "otel_memory") != 0)
		return false;
	*out = strcmp(name, "alloc") == 0 ? MARKER_ALLOC : MARKER_FREE;
	return *out == MARKER_ALLOC || strcmp(name, "free") == 0;
}

static size_t count_arguments(const char *text)
{
	size_t count = 0;
	for (text += strspn(text, " "); *text; text += strspn(text, " "), count++)
		text += strcspn(text, " ");
	return count;
}

/* Parses the first @count arguments, which are separated by spaces; there may be more. */
static int read_arguments(const struct arch *arch, const char *text,
			  struct arch_operand *const out[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		text += strspn(text, " ");
		size_t size = strcspn(text, " ");
		if (size == 0)
			return -EINVAL;
		int rc = arch->parse_operand(text, size, out[i]);
		if (rc != 0)
			return rc;
		text += size;
	}
	return 0;
}

int marker_read_note(const struct arch *arch, const uint8_t *desc, size_t size, uint64_t base,
		     struct marker *out)
{
	uint64_t word[3];
	size_t at = sizeof(word);
	struct marker m = {0};
	if (size < sizeof(word))
		return -EINVAL;
	memcpy(word, desc, sizeof(word));
	const char *provider = take_text(desc, size, &at);
	const char *name = provider ? take_text(desc, size, &at) : NULL;
	const char *arguments = name ? take_text(desc, size, &at) : NULL;
	if (!arguments)
		return -EINVAL;
	if (!find_kind(provider, name, &m.kind))
		return -ENOENT;
	uint64_t moved = base && word[1] ? base - word[1] : 0;
	m.vaddr = word[0] + moved;
	m.semaphore = word[2] ? word[2] + moved : 0;
	struct arch_operand *const operands[] = {&m.block, &m.size, &m.weighted};
	m.has_weight = m.kind == MARKER_ALLOC && strcmp(provider, "otel_memory") == 0 &&
		       count_arguments(arguments) >= 3;
	if (read_arguments(arch, arguments, operands,
			   m.has_weight ? 3 : m.kind == MARKER_ALLOC ? 2 : 1) != 0)
		return -ENOTSUP;
	*out = m;
	return 0;
}

static bool has_name(const struct elf_file *file, const GElf_Shdr *sh, const char *wanted)
{
	size_t index;
	if (elf_getshdrstrndx(file->elf, &index) != 0)
		return false;
	const char *name = elf_strptr(file->elf, index, sh->sh_name);
	return name && strcmp(name, wanted) == 0;
}

static bool is_text(const struct elf_file *file, uint64_t vaddr)
{
	const struct elf_segment *seg = elf_file_segment(file, vaddr);
	return seg && seg->is_exec && vaddr - seg->vaddr < seg->filesz;
}

/* State for reading the notes of one file. */
struct note_reader {
	const struct elf_file *file;
	const struct arch *arch;
	uint64_t base;           /* address of .stapsdt.base; 0 = the file has none */
	struct marker_list *out;
};

static void add_note(const struct note_reader *r, const uint8_t *desc, size_t size)
{
	struct marker m;
	int rc = marker_read_note(r->arch, desc, size, r->base, &m);
	if (rc == -ENOTSUP || (rc == 0 && !is_text(r->file, m.vaddr)))
		r->out->unknown++;
	else if (rc == 0)
		*vec_add(&r->out->list) = m;
}

static void read_notes(const struct note_reader *r, Elf_Scn *scn)
{
	static const char owner[] = "stapsdt";
	Elf_Data *d = elf_getdata(scn, NULL);
	size_t pos = 0, name, desc;
	GElf_Nhdr note;
	while (d && d->d_buf && pos < d->d_size &&
	       (pos = gelf_getnote(d, pos, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = d->d_buf;
		if (note.n_type == NOTE_PROBE && note.n_namesz == sizeof(owner) &&
		    memcmp(bytes + name, owner, sizeof(owner)) == 0)
			add_note(r, bytes + desc, note.n_descsz);
	}
}

static void find_notes(const struct elf_file *file, const struct arch *arch,
		       struct marker_list *out)
{
	struct note_reader r = {.file = file, .arch = arch, .out = out};
	GElf_Shdr sh;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_PROGBITS &&
		    has_name(file, &sh, ".stapsdt.base"))
			r.base = sh.sh_addr;
	}
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(file->elf, scn));) {
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE &&
		    has_name(file, &sh, ".note.stapsdt"))
			read_notes(&r, scn);
	}
}

/* -- both -- */

static int compare(const void *a, const void *b)
{
	const struct marker *x = a, *y = b;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* The first marker at or after @vaddr. */
static size_t lower_bound(const struct marker_list *list, uint64_t vaddr)
{
	return vec_search(&list->list, m, m->vaddr < vaddr);
}

/* Symbols may overlap: the largest function is used, since all its branches matter. */
static int note_function(void *ctx, const struct elf_symbol *sym)
{
	struct marker_list *out = ctx;
	if (!sym->is_defined || sym->type != STT_FUNC || sym->size == 0)
		return 0;
	for (size_t i = lower_bound(out, sym->vaddr); i < out->list.count; i++) {
		struct marker *m = &out->list.data[i];
		if (m->vaddr - sym->vaddr >= sym->size)
			break;
		if (sym->size > m->function_size) {
			m->function = sym->vaddr;
			m->function_size = sym->size;
		}
	}
	return 0;
}

void marker_find(struct elf_file *file, const struct arch *arch, struct marker_list *out)
{
	*out = (struct marker_list){0};
	for (size_t i = 0; i < file->segment_count && file->fd >= 0; i++) {
		if (file->segment[i].is_exec)
			scan_segment(file, arch, &file->segment[i], out);
	}
	find_notes(file, arch, out);
	if (out->list.count > 1)
		qsort(out->list.data, out->list.count, sizeof(*out->list.data), compare);
	size_t kept = 0;
	for (size_t i = 0; i < out->list.count; i++) {
		if (i == 0 || out->list.data[i].vaddr != out->list.data[kept - 1].vaddr)
			out->list.data[kept++] = out->list.data[i];
	}
	out->list.count = kept;
	if (kept > 0)
		elf_file_each_symbol(file, note_function, out);
}

bool marker_is_argument(const struct arch_operand *o, const struct arch *arch, unsigned i)
{
	return o->kind == OPERAND_REGISTER && o->base == arch->arg[i] && o->size == 8 &&
	       o->shift == 0;
}

int marker_value(const struct arch_operand *o, const struct arch_regs *regs, marker_read_fn *read,
		 void *ctx, uint64_t *out)
{
	uint64_t value = 0;
	if (o->kind == OPERAND_CONSTANT) {
		value = (uint64_t)o->value;
	} else if (o->kind == OPERAND_REGISTER) {
		value = regs->word[o->base] >> o->shift;
	} else {
		taddr_t addr = (uint64_t)o->value;
		if (o->base != ARCH_NO_REG)
			addr += regs->word[o->base];
		if (o->index != ARCH_NO_REG)
			addr += regs->word[o->index] * o->scale;
		int rc = read(ctx, addr, &value, o->size);
		if (rc != 0)
			return rc;
	}
	unsigned unused = 64 - 8u * o->size;
	value <<= unused;
	*out = o->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
	return 0;
}
